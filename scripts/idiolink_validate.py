"""Have generated texts judged by a language model, several times each; the majority decides."""

import argparse
import json
from functools import partial
from pathlib import Path

from pieline.construction.generation import GeneratedText
from pieline.construction.votes import Judge, validate
from pieline.errors import run_command
from pieline.llm.client import ask
from pieline.llm.prompts import PromptFolder
from pieline.llm_settings import load_llm_settings
from pieline.records import load_jsonl, save_jsonl
from pieline.registry import parse_llm_spec


def main() -> None:
    """Parse the command line and ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="JSONL file of one collection")
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--model", required=True, help="its name")
    parser.add_argument("--parameters", required=True, help="request parameters, as JSON")
    parser.add_argument("--runs", type=int, required=True, help="votes on each text")
    parser.add_argument("--prompt", type=Path, required=True, help="the prompt's template")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="JSONL file of verdicts")
    it = parser.parse_args()

    spec = parse_llm_spec(it.spec, name=it.model)
    prompt = PromptFolder(it.prompt.parent).load(it.prompt.name)
    judge = Judge(it.model, spec, prompt, json.loads(it.parameters), it.runs)
    settings = load_llm_settings(it.settings)
    answers = partial(ask, spec=spec, settings=settings, recordings_path=it.recordings)
    save_jsonl(it.output, validate(load_jsonl(it.texts, GeneratedText), judge, answers))


if __name__ == "__main__":
    run_command(main)
