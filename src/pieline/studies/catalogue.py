"""Finds the studies: every package beside this module that has a module `study` is one.

A study's module has one class derived from `pieline.study.Study`; nothing else names the studies.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from pieline import studies
from pieline.study import Study


@cache
def study_classes() -> dict[str, type[Study[Any]]]:
    """The class of each study by its name, in alphabetical order."""
    found = {}
    for package in sorted(pkgutil.iter_modules(studies.__path__), key=lambda item: item.name):
        if not package.ispkg:
            continue
        module = importlib.import_module(f"{studies.__name__}.{package.name}.study")
        for item in vars(module).values():
            if (
                isinstance(item, type)
                and issubclass(item, Study)
                and item.__module__ == module.__name__
            ):
                found[item.name] = item
    return found
