"""Have a model write hard variants, have it validate them, and check them automatically."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl, parse_record, save_jsonl
from pieline.llm.options import llm_parser, model_to_ask
from pieline.llm.prompts import PromptFolder
from pieline.studies.jam.records import Original
from pieline.studies.jam.variants.generation import GenerationSettings, generate_variants
from pieline.studies.jam.variants.validation import check_variants, parse_limits


def main() -> None:
    """Parse the command line and generate."""
    parser = llm_parser(__doc__)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("--generation", required=True, help="how to ask, as JSON")
    parser.add_argument("--prompts", type=Path, required=True, help="folder of the prompts")
    parser.add_argument("--checks", required=True, help="jam.variants.checks, as JSON")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    it = parser.parse_args()

    originals = load_jsonl(it.originals, Original)
    spec, asking = model_to_ask(it)
    prompts = PromptFolder(it.prompts)
    generation = parse_record(it.generation, GenerationSettings, option="--generation")
    made = generate_variants(originals, spec, generation, prompts, asking)
    save_jsonl(it.output, check_variants(originals, made.variants, limits=parse_limits(it.checks)))
    write_json(it.report, made.report | {"model": it.model})


if __name__ == "__main__":
    run_command(main)
