"""The command-line options of scripts that ask a language model."""

import argparse
import json
from functools import partial
from pathlib import Path

from pieline.core.errors import UserError
from pieline.llm.answers import Answer
from pieline.llm.client import ask
from pieline.llm.settings import LLMSettings, load_settings
from pieline.models.llm import LLMEntry, parse_llm_spec


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


def load_llm_settings(text: str) -> LLMSettings:
    """The settings that a rule hands to its script, as JSON.

    Raises:
        UserError: the text is no such settings.
    """
    try:
        entry = json.loads(text)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise UserError("not a JSON object", where="--settings", mend="pass the section llm")
    return load_settings(entry, where="--settings")
