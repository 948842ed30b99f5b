"""Have generated texts judged by a language model, several times each; the majority decides."""

import json
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import load_jsonl, save_jsonl
from pieline.llm.options import llm_parser, model_to_ask
from pieline.llm.prompts import PromptFolder
from pieline.studies.idiolink.variants.generation import GeneratedText
from pieline.studies.idiolink.variants.votes import Judge, validate


def main() -> None:
    """Parse the command line and ask."""
    parser = llm_parser(__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="JSONL file of one collection")
    parser.add_argument("--parameters", required=True, help="request parameters, as JSON")
    parser.add_argument("--runs", type=int, required=True, help="votes on each text")
    parser.add_argument("--prompt", type=Path, required=True, help="the prompt's template")
    parser.add_argument("--output", type=Path, required=True, help="JSONL file of verdicts")
    it = parser.parse_args()

    spec, answers = model_to_ask(it)
    prompt = PromptFolder(it.prompt.parent).load(it.prompt.name)
    judge = Judge(it.model, spec, prompt, json.loads(it.parameters), it.runs)
    save_jsonl(it.output, validate(load_jsonl(it.texts, GeneratedText), judge, answers))


if __name__ == "__main__":
    run_command(main)
