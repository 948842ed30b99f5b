"""What every script is made of: options that it declares in a line, and how it runs."""

import argparse
from collections.abc import Callable
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from pieline.core.errors import run_command
from pieline.core.records import parse_record

Options = argparse.Namespace
Program = Callable[[Options], None]

HELP = {
    "checkpoint": "kept while the training is unfinished",
    "conditions": "settings, models and weights behind the numbers, as JSON",
    "config": "the whole configuration, as JSON",
    "corrections": "what people decided on the texts, CSV",
    "csv": "CSV to write",
    "dataset": "folder of the dataset",
    "dev": "ID10M's dev split",
    "displays": "tables and figures of the run, as JSON",
    "documents": "the documents, JSONL",
    "given": "what it is made from, as JSON",
    "html": "HTML to write",
    "json": "JSON to write",
    "manifest": "manifest of the dataset, JSON",
    "model": "name of the model",
    "originals": "the originals, JSONL",
    "output": "file to write",
    "pdf": "PDF to write",
    "png": "PNG to write",
    "predictions": "predictions of one run, JSONL",
    "queries": "the queries, JSONL",
    "query_mode": "what of a query's sentence is searched with",
    "raw": "ID10M's test split",
    "report": "report on the originals, JSON",
    "resamples": "draws of the bootstrap",
    "root": "folder of the project",
    "sample": "the data are the sample's",
    "seed": "seed of the run",
    "sentences": "the dataset's sentences, JSONL",
    "setting": "setting of the run",
    "settings": "hyperparameters, as JSON",
    "spec": "the model's entry, as JSON",
    "splits": "the PIEs of each split, JSON",
    "tables": "our tables, CSV",
    "tag": "name of the run",
    "template": "jinja2 template",
    "tex": "LaTeX to write",
    "texts": "the generated texts, JSONL",
    "threads": "CPU threads",
    "top_k": "documents to rank for a query",
    "train": "ID10M's train split",
    "tuning": "what bm25_tune chose, JSON",
    "upstream": "data/upstream.yaml",
    "variants": "the hard variants, JSONL",
    "verdicts": "verdicts on the generated texts, JSONL",
    "weights": "folder to load instead of the entry's",
}
"""What an option is, unless its script says more."""


def program(**declared: Any) -> Callable[[Program], Program]:
    """Make a function the program of its file: it runs where the file is run, not imported.

    The file's docstring is what `--help` says of it. A `UserError` ends it with one line.

    Args:
        declared: the options (see `add_options`).
    """

    def run(main: Program) -> Program:
        if main.__module__ == "__main__":
            parser = argparse.ArgumentParser(description=main.__globals__["__doc__"])
            add_options(parser, **declared)
            run_command(lambda: main(parser.parse_args()))
        return main

    return run


def add_options(parser: argparse.ArgumentParser, **declared: Any) -> None:
    """Add options to a parser.

    Args:
        parser: of a program or of one of its commands.
        declared: by name (`top_k` is `--top-k`) the type, or type and help where `HELP` does not
            say what the option is. `bool` is a flag, a pydantic class is read from JSON, a list of
            words is a choice, and any other type or function parses the text. `list[Path]` takes
            one value or more. All must be given, except `Path | None`, which may also stand
            without a value, and `list[Path] | None`, which is then an empty list.
    """
    for name, told in declared.items():
        kind, about = told if isinstance(told, tuple) else (told, HELP[name])
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, help=about, **_taking(kind, option))


def _taking(kind: Any, option: str) -> dict[str, Any]:
    """What `add_argument` is told of an option of this type."""
    if kind is bool:
        return {"action": "store_true"}
    if isinstance(kind, UnionType):
        told = _taking(get_args(kind)[0], option)
        several = {"nargs": "*", "default": []} if "nargs" in told else {"nargs": "?"}
        return told | several | {"required": False}
    if isinstance(kind, list):
        return {"choices": kind, "required": True}
    if get_origin(kind) is list:
        return {"type": get_args(kind)[0], "nargs": "+", "required": True}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {"type": lambda text: parse_record(text, kind, option=option), "required": True}
    return {"type": kind, "required": True}
