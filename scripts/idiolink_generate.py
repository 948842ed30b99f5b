"""Have the documents or queries of every (PIE, domain) pair written by a language model."""

import json
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl, save_jsonl
from pieline.llm.options import llm_parser, model_to_ask
from pieline.llm.prompts import PromptFolder
from pieline.studies.idiolink.variants.generation import Pair, Writer, generate


def main() -> None:
    """Parse the command line and ask."""
    parser = llm_parser(__doc__)
    parser.add_argument("--collection", choices=["documents", "queries"], required=True)
    parser.add_argument("--pairs", type=Path, required=True, help="JSONL file")
    parser.add_argument("--parameters", required=True, help="request parameters, as JSON")
    parser.add_argument("--attempts", type=int, required=True, help="most answers for one pair")
    parser.add_argument("--prompt", type=Path, required=True, help="the prompt's template")
    parser.add_argument("--output", type=Path, required=True, help="JSONL file of texts")
    parser.add_argument("--report", type=Path, required=True, help="JSON file")
    it = parser.parse_args()

    spec, answers = model_to_ask(it)
    prompt = PromptFolder(it.prompt.parent).load(it.prompt.name)
    writer = Writer(it.model, spec, prompt, json.loads(it.parameters), it.attempts)
    texts, report = generate(load_jsonl(it.pairs, Pair), writer, it.collection, answers)
    save_jsonl(it.output, texts)
    write_json(it.report, report.model_dump())


if __name__ == "__main__":
    run_command(main)
