"""Have a model write hard variants, have it validate them, and check them automatically."""

import argparse
from functools import partial
from pathlib import Path

from pieline.errors import run_command
from pieline.files import write_json
from pieline.jam_records import Original
from pieline.llm.client import ask
from pieline.llm.prompts import PromptFolder
from pieline.llm_settings import load_llm_settings
from pieline.records import load_jsonl, save_jsonl
from pieline.registry import parse_llm_spec
from pieline.validation import check_variants, parse_limits
from pieline.variants import generate_variants, parse_generation


def main() -> None:
    """Parse the command line and generate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--model", required=True, help="its name")
    parser.add_argument("--generation", required=True, help="how to ask, as JSON")
    parser.add_argument("--prompts", type=Path, required=True, help="folder of the prompts")
    parser.add_argument("--checks", required=True, help="jam.variants.checks, as JSON")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    it = parser.parse_args()

    originals = load_jsonl(it.originals, Original)
    spec, settings = parse_llm_spec(it.spec, name=it.model), load_llm_settings(it.settings)
    asking = partial(ask, spec=spec, settings=settings, recordings_path=it.recordings)
    prompts, generation = PromptFolder(it.prompts), parse_generation(it.generation)
    made = generate_variants(originals, spec, generation, prompts, asking)
    save_jsonl(it.output, check_variants(originals, made.variants, limits=parse_limits(it.checks)))
    write_json(it.report, made.report | {"model": it.model})


if __name__ == "__main__":
    run_command(main)
