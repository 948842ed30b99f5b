"""Find the library modules that a piece of code depends on, and hash their sources.

Uses grimp's import graph, which includes imports inside functions but not imports under
`TYPE_CHECKING`.
"""

import ast
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import grimp

_LOADED_BY_NAME = {"pieline.languages.registry": "pieline.languages"}
"""Packages whose modules are imported by name at run time, keyed by the importing module."""


LIBRARY = ("pieline",)


def modules_behind(modules: Iterable[str], packages: tuple[str, ...] = LIBRARY) -> list[str]:
    """Return the given modules and all modules that importing them executes, sorted by name.

    Includes parent packages, whose code is also executed. Omits modules outside `packages`.
    """
    graph = _graph(packages)
    reached = {name for name in modules if name in graph.modules}
    queue = list(reached)
    while queue:
        name = queue.pop()
        imported = graph.find_modules_directly_imported_by(name)
        if package := _LOADED_BY_NAME.get(name):
            imported |= graph.find_children(package)
        if name.rpartition(".")[0]:
            imported.add(name.rpartition(".")[0])
        queue += imported - reached
        reached |= imported
    return sorted(reached)


@cache
def imports_of(script: str | Path, packages: tuple[str, ...] = LIBRARY) -> frozenset[str]:
    """Return the names of the modules in `packages` that a script outside them imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(script).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names & _graph(packages).modules)


@cache
def source_of(module: str) -> Path:
    """Return the path of a module's source file.

    Raises:
        ModuleNotFoundError: The module does not exist or has no source file.
    """
    spec = find_spec(module)
    if not spec or not spec.origin:
        raise ModuleNotFoundError(module)
    return Path(spec.origin)


@cache
def code_digest(*modules: str) -> str:
    """Return the SHA-256 of the sources of the given modules and of their dependencies.

    Only dependencies in the same top-level packages and in this library are included.
    """
    packages = tuple(sorted({*LIBRARY, *(name.partition(".")[0] for name in modules)}))
    sources = (source_of(name).read_bytes() for name in modules_behind(modules, packages))
    return sha256(b"".join(sha256(source).digest() for source in sources)).hexdigest()


@cache
def _graph(packages: tuple[str, ...]) -> grimp.ImportGraph:
    return grimp.build_graph(*packages, cache_dir=None, exclude_type_checking_imports=True)
