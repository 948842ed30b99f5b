"""Have a model write a neutral variant for each hard one that confused another model."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.files import write_json
from pieline.core.records import load_jsonl, parse_record, save_jsonl
from pieline.llm.options import llm_parser, model_to_ask
from pieline.llm.prompts import PromptFolder
from pieline.studies.jam.records import JamSentence
from pieline.studies.jam.variants.generation import (
    GenerationSettings,
    confusing_variants,
    generate_neutral_variants,
)


def main() -> None:
    """Parse the command line and generate."""
    parser = llm_parser(__doc__)
    parser.add_argument("--dataset", type=Path, required=True, help="<language>.jsonl")
    parser.add_argument("--metrics", type=Path, required=True, help="of the confused model")
    parser.add_argument("--generation", required=True, help="how to ask, as JSON")
    parser.add_argument("--prompts", type=Path, required=True, help="folder of the prompts")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    it = parser.parse_args()

    spec, asking = model_to_ask(it)
    variants, report = generate_neutral_variants(
        load_jsonl(it.dataset, JamSentence),
        confusing_variants(it.metrics),
        spec=spec,
        settings=parse_record(it.generation, GenerationSettings, option="--generation"),
        prompts=PromptFolder(it.prompts),
        ask=asking,
    )
    save_jsonl(it.output, variants)
    write_json(it.report, report | {"model": it.model})


if __name__ == "__main__":
    run_command(main)
