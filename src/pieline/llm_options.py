"""The command-line options of scripts that ask a language model."""

import argparse
from functools import partial
from pathlib import Path

from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm_settings import load_llm_settings
from pieline.registry import LLMEntry, parse_llm_spec


def llm_parser(about: str | None) -> argparse.ArgumentParser:
    """A parser of what says which model to ask, and how; a script adds its own options.

    Args:
        about: what the script does.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--spec", required=True, help="the model's entry, as JSON")
    parser.add_argument("--model", required=True, help="its name")
    parser.add_argument("--settings", required=True, help="the section llm of config.yaml, as JSON")
    parser.add_argument("--recordings", type=Path, required=True, help="of its answers, JSONL")
    return parser


def model_to_ask(options: argparse.Namespace) -> tuple[LLMEntry, partial[dict[str, Answer]]]:
    """The model that the options of `llm_parser` name, and how to ask it questions.

    Raises:
        UserError: an option is wrong.
    """
    spec = parse_llm_spec(options.spec, name=options.model)
    settings = load_llm_settings(options.settings)
    return spec, partial(ask, spec=spec, settings=settings, recordings_path=options.recordings)
