"""Which library modules a piece of code depends on, and digests of their sources.

The import graph is grimp's. It counts imports inside functions too, but not those
that only a type checker sees.
"""

import ast
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import grimp

_LOADED_BY_NAME = {"pieline.languages.registry": "pieline.languages"}
"""A module that imports all modules of a package, whatever their names."""


def modules_behind(modules: Iterable[str]) -> list[str]:
    """Library modules (`pieline.core.files`) and all that importing them runs, sorted.

    Importing a module also runs the packages above it. Other packages' modules are left out.
    """
    graph = _graph()
    found = {name for name in modules if name in graph.modules}
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        near = graph.find_modules_directly_imported_by(name)
        if package := _LOADED_BY_NAME.get(name):
            near |= graph.find_children(package)
        if name.rpartition(".")[0]:
            near.add(name.rpartition(".")[0])
        waiting += near - found
        found |= near
    return sorted(found)


def imports_of(script: str | Path) -> set[str]:
    """The library modules that a file outside the library imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(script).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names & _graph().modules


@cache
def source_of(module: str) -> Path:
    """The file of a library module."""
    place = Path(__file__).parents[2].joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def code_digest(*modules: str) -> str:
    """SHA-256 of the sources of modules and of all library modules behind them."""
    sources = (source_of(name).read_bytes() for name in modules_behind(modules))
    return sha256(b"".join(sha256(source).digest() for source in sources)).hexdigest()


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("pieline", cache_dir=None, exclude_type_checking_imports=True)
