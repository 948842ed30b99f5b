"""Estimate the calls and cost (USD) of constructing IdioLink from the released texts, offline."""

import argparse
import json
import tempfile
from pathlib import Path

from pieline.core.files import write_json
from pieline.core.records import save_jsonl
from pieline.llm.costs import BYTES_PER_TOKEN, estimate, price
from pieline.llm.settings import LLMSettings
from pieline.models.registry import load_registry
from pieline.project import Project
from pieline.studies.idiolink import tasks as idiolink_tasks
from pieline.studies.idiolink.models import COLLECTIONS
from pieline.studies.idiolink.originals.pairs import Pair
from pieline.studies.idiolink.raw import read_texts
from pieline.studies.idiolink.records import Document, parse_id
from pieline.studies.idiolink.settings import IdiolinkSettings
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.variants.generation import GeneratedText

ROOT = Path(__file__).parents[2]
FILES = {"documents": "indexes", "queries": "queries"}


def main() -> None:
    """Count calls and tokens, and print and save the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("released", type=Path, help="folder with the released splits")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).with_name("calls_and_cost.json")
    )
    arguments = parser.parse_args()

    run = Project(load_registry(ROOT / "models.yaml"), LLMSettings(), "released", root=ROOT)
    study = IdiolinkStudy(IdiolinkSettings(), run)
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for collection in COLLECTIONS:
            texts = [
                GeneratedText(**text.model_dump(), answer_key="")
                for split in ("train", "val", "test")
                for text in read_texts(
                    arguments.released / split / f"{FILES[collection]}.json", Document
                )
            ]
            pairs = {(text.pie, parse_id(text.id).pie_number, text.subject) for text in texts}
            inputs = {
                name: str(Path(folder, f"{collection}.{name}")) for name in ("pairs", "texts")
            }
            save_jsonl(
                inputs["pairs"],
                [Pair(pie=pie, pie_number=n, domain=subject) for pie, n, subject in sorted(pairs)],
            )
            save_jsonl(inputs["texts"], texts)
            # Each text of an answer adds two quotes, a comma and a space.
            written = sum(len(text.marked.encode()) + 4 for text in texts) / BYTES_PER_TOKEN
            for task, length in (
                (idiolink_tasks.writing(study, collection), written / len(pairs)),
                (idiolink_tasks.validation(study, collection), 40 * len(texts) / len(pairs)),
            ):
                job = task.model_copy(update={"inputs": {**task.inputs, **inputs}})
                entry = job.entry()
                totals = estimate(job.questions(entry), entry, likely_tokens=round(length))
                thoughts = price(entry, 0, 1000 * totals.questions) if entry.bills_thoughts else 0.0
                figures[f"{type(task).__name__} {collection}"] = {
                    "model": task.model,
                    "calls": totals.questions,
                    "input_tokens": totals.input_tokens,
                    "output_tokens": totals.likely_output_tokens,
                    "usd_without_thoughts": round(totals.likely_usd or 0.0, 2),
                    "usd_of_1000_thought_tokens_a_call": round(thoughts, 2),
                }
    figures["all"] = {
        name: round(sum(each[name] for each in figures.values()), 2)
        for name in ("calls", "usd_without_thoughts", "usd_of_1000_thought_tokens_a_call")
    }
    write_json(arguments.output, figures)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
