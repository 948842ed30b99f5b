"""Ask one model about every sentence of IdioTS, from recordings where they have the answer."""

import json
from pathlib import Path

from pieline.core.errors import run_command
from pieline.core.records import save_jsonl
from pieline.llm.options import llm_parser, load_llm_settings
from pieline.llm.prompts import PromptFolder
from pieline.models.llm import parse_llm_spec
from pieline.studies.idiots.datasets import IdiotsDataset
from pieline.studies.idiots.predictions import detect, detection_questions


def main() -> None:
    """Parse the command line and ask."""
    parser = llm_parser(__doc__)
    parser.add_argument("--setting", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--parameters", required=True, help="request parameters, as JSON")
    parser.add_argument("--prompt", type=Path, required=True, help="the prompt's template")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the dataset")
    parser.add_argument("--output", type=Path, required=True)
    it = parser.parse_args()

    spec = parse_llm_spec(it.spec, name=it.model)
    sentences = IdiotsDataset.load(it.dataset).sentences
    prompt = PromptFolder(it.prompt.parent).load(it.prompt.name)
    questions = detection_questions(
        sentences, spec, prompt, json.loads(it.parameters), setting=it.setting, seed=it.seed
    )
    settings = load_llm_settings(it.settings)
    save_jsonl(it.output, detect(sentences, questions, spec, settings, it.recordings))


if __name__ == "__main__":
    run_command(main)
