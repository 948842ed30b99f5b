"""Have a model write a neutral variant for each hard one that confused another model."""

import argparse
from functools import partial
from pathlib import Path

from pieline.errors import run_command
from pieline.files import write_json
from pieline.jam_records import JamSentence
from pieline.llm.client import ask
from pieline.llm.prompts import PromptFolder
from pieline.llm_settings import load_llm_settings
from pieline.records import load_jsonl, save_jsonl
from pieline.registry import parse_llm_spec
from pieline.variants import confusing_variants, generate_neutral_variants, parse_generation


def main() -> None:
    """Parse the command line and generate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="<language>.jsonl")
    parser.add_argument("--metrics", type=Path, required=True, help="of the confused model")
    parser.add_argument("--spec", required=True, help="the writing model's entry, as JSON")
    parser.add_argument("--model", required=True, help="its name")
    parser.add_argument("--generation", required=True, help="how to ask, as JSON")
    parser.add_argument("--prompts", type=Path, required=True, help="folder of the prompts")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    it = parser.parse_args()

    spec, settings = parse_llm_spec(it.spec, name=it.model), load_llm_settings(it.settings)
    variants, report = generate_neutral_variants(
        load_jsonl(it.dataset, JamSentence),
        confusing_variants(it.metrics),
        spec=spec,
        settings=parse_generation(it.generation),
        prompts=PromptFolder(it.prompts),
        ask=partial(ask, spec=spec, settings=settings, recordings_path=it.recordings),
    )
    save_jsonl(it.output, variants)
    write_json(it.report, report | {"model": it.model})


if __name__ == "__main__":
    run_command(main)
