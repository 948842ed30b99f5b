"""Record the sample's scripted answers; run it after a change to a prompt or the script.

The answers demonstrate the construction without a model. They were written manually; their
recordings and all reports made from them state `hand-written`. No rule calls this program: the
workflow only reads the recordings.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pieline.config import layered, load_config, load_studies
from pieline.core.errors import UserError, run_command
from pieline.core.files import canonical_json, write_text
from pieline.core.yamls import read_yaml
from pieline.llm.answers import Answer
from pieline.llm.questions import Question
from pieline.llm.recordings import record
from pieline.models.registry import load_registry
from pieline.studies.idiolink import files as idiolink_files
from pieline.studies.idiolink import models as idiolink_models
from pieline.studies.idiolink import tasks as idiolink_tasks
from pieline.studies.idiolink.models import COLLECTIONS
from pieline.studies.idiolink.originals.pairs import Pair, filter_magpie
from pieline.studies.idiolink.originals.pie_filter import FilterOptions
from pieline.studies.idiolink.records import TEXTS_PER_PAIR, Collection
from pieline.studies.idiolink.study import IdiolinkStudy
from pieline.studies.idiolink.variants.generation import (
    GeneratedText,
    Role,
    generate,
    generation_question,
)
from pieline.studies.idiolink.variants.validation import CRITERIA, VOTES, validation_questions

Scripted = list[tuple[Question, Answer]]


class Script(NamedTuple):
    """Manually written script.

    Attributes:
        texts: Texts by PIE, domain and usage.
        turns: Answers in other forms, incomplete answers and negative judgments, by kind.
    """

    texts: Mapping[str, Any]
    turns: Mapping[str, Any]


def record_script(study: IdiolinkStudy, output: Path) -> list[Path]:
    """Write the recordings of the sample's script; return the paths of the files.

    Args:
        study: Study on the sample data, whose tasks ask the questions.
        output: Output folder with the layout of the recordings folder.

    Raises:
        UserError: The sample, a prompt or the script is invalid.
    """
    sample = Path(study.project.here("data", "sample"))
    _, pairs, _ = filter_magpie(
        sample / "magpie" / "MAGPIE_sample.jsonl",
        idiolink_files.exclusions(study),
        FilterOptions.model_validate_json(idiolink_models.pie_options(study)),
        candidates=None,
        documents=[],
        computed_from={},
    )
    folder = sample / "idiolink_construction"
    script = Script(read_yaml(folder / "texts.yaml"), read_yaml(folder / "script.yaml"))
    files: dict[str, Scripted] = {}
    for collection in COLLECTIONS:
        writing, validation = (
            idiolink_tasks.writing(study, collection),
            idiolink_tasks.validation(study, collection),
        )
        writer = writing.role(writing.entry(), writing.attempts)
        judge = validation.role(validation.entry(), VOTES)
        answers = scripted_generation(script, pairs, writer, collection)
        recorded = {question.key: answer for question, answer in answers}
        # The script answers all questions.
        texts, _ = generate(pairs, writer, collection, lambda _, known=recorded: known)
        files[writing.recordings] = answers
        files[validation.recordings] = scripted_validation(script, texts, judge, collection)
    written = []
    for name, answers in files.items():
        path = output / Path(name).relative_to(study.project.recordings())
        # Removes answers to questions that are no longer asked.
        write_text(path, "")
        record(path, answers)
        written.append(path)
    return written


def scripted_generation(
    script: Script, pairs: Sequence[Pair], writer: Role, collection: Collection
) -> Scripted:
    """Return the writer's answers on all pairs, including unusable first answers.

    Raises:
        UserError: The script has no texts for a pair.
    """
    answers = []
    for pair in pairs:
        try:
            written = script.texts[pair.pie][pair.domain]
            texts = {
                usage: [written["queries"][usage]] if collection == "queries" else written[usage]
                for usage in TEXTS_PER_PAIR[collection]
            }
        except KeyError:
            raise UserError(
                f"no {collection} for {pair.name}", where="texts.yaml", hint="add them"
            ) from None
        turns = [{"text": canonical_json(texts)}]
        if pair.name in script.turns["fenced"].get(collection, []):
            turns = [{"text": f"```python\n{texts!r}\n```"}]
        first = script.turns["first_answers"].get(collection, {}).get(pair.name)
        for attempt, turn in enumerate([first, *turns] if first else turns):
            question = generation_question(pair, writer, collection, attempt=attempt)
            answers.append((question, _answer(question, turn)))
    return answers


def scripted_validation(
    script: Script, texts: Sequence[GeneratedText], judge: Role, collection: Collection
) -> Scripted:
    """Return the validator's answers on all pairs, for every run of the validator."""
    answers = []
    for question, members in validation_questions(texts, judge):
        pair, run = f"{members[0].pie} / {members[0].subject}", question.sample + 1
        scripted = script.turns["validator_answers"].get(collection, {}).get(pair, {}).get(run)
        turn = scripted or {
            "text": canonical_json({"judgements": _judgements(script, members, run)})
        }
        answers.append((question, _answer(question, turn)))
    return answers


def _judgements(
    script: Script, texts: Sequence[GeneratedText], run: int
) -> list[dict[str, object]]:
    judgements: list[dict[str, object]] = []
    for number, text in enumerate(texts, start=1):
        if run in script.turns["forgotten"].get(text.id, []):
            continue
        broken = script.turns["broken"].get(text.id, {}).get(run, {})
        verdict: dict[str, object] = {name: name not in broken for name in CRITERIA}
        judgements.append({"number": number, **verdict, "comment": "; ".join(broken.values())})
    return judgements


def _answer(question: Question, turn: Mapping[str, str]) -> Answer:
    return Answer(
        key=question.key,
        text=turn["text"].strip(),
        finish_reason=turn.get("finish_reason", "stop"),
        origin="hand-written",
    )


def main() -> None:
    """Record all answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="project folder")
    parser.add_argument("--output", type=Path, help="output folder, instead of the recordings")
    arguments = parser.parse_args()
    root = arguments.root
    raw = layered(read_yaml(root / "config.yaml"), root / "config" / "sample.yaml")
    studies = load_studies(load_config(raw), load_registry(root / "models.yaml"), root)
    study = studies["idiolink"]
    assert isinstance(study, IdiolinkStudy)
    for path in record_script(study, arguments.output or Path(study.project.recordings())):
        print(path)


if __name__ == "__main__":
    run_command(main)
