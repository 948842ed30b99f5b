"""Ask one language model for the idioms of every sentence, from recordings where they have it."""

from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import save_jsonl
from pieline.llm.options import llm_parser, model_to_ask
from pieline.llm.prompts import PromptFolder
from pieline.studies.jam.datasets.sentences import load_sentences
from pieline.studies.jam.predictions.prompting import identify, parse_prompting
from pieline.studies.jam.raw.id10m import read_id10m


def main() -> None:
    """Parse the command line and ask."""
    parser = llm_parser(__doc__)
    parser.add_argument("--setting", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--parameters", required=True, help="of the setting, as JSON")
    parser.add_argument("--prompts", type=Path, required=True, help="folder of the prompts")
    parser.add_argument("--train", type=Path, nargs="?", help="where examples are drawn from")
    parser.add_argument("--sentences", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()

    spec, asking = model_to_ask(it)
    prompting = parse_prompting(
        it.parameters,
        setting=it.setting,
        seed=it.seed,
        prompts=PromptFolder(it.prompts),
        examples_from=read_id10m(it.train, split="train") if it.train else [],
    )
    save_jsonl(it.output, identify(load_sentences(it.sentences), spec, prompting, asking))


if __name__ == "__main__":
    run_command(main)
