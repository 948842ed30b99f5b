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
    """Return the given modules and all modules that run when these are imported, sorted by name.

    Importing a module also executes its parent packages. Modules outside `packages` are omitted.
    """
    graph = _graph(packages)
    reached = {module for module in modules if module in graph.modules}
    unexplored = list(reached)
    while unexplored:
        module = unexplored.pop()
        executed = graph.find_modules_directly_imported_by(module)
        if package := _LOADED_BY_NAME.get(module):
            executed |= graph.find_children(package)
        parent_package = module.rpartition(".")[0]
        if parent_package:
            executed.add(parent_package)
        unexplored += executed - reached
        reached |= executed
    return sorted(reached)


@cache
def imports_of(script: str | Path, packages: tuple[str, ...] = LIBRARY) -> frozenset[str]:
    """Return the full names of the modules in `packages` that a script imports."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(Path(script).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
            # An imported name may be a module or an object; only modules are in the graph.
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(imported & _graph(packages).modules)


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

    Dependencies count only if they are in this library or in the top-level package of one of the
    given modules.
    """
    top_level_packages = {module.partition(".")[0] for module in modules}
    packages = tuple(sorted({*LIBRARY, *top_level_packages}))
    digests = [
        sha256(source_of(module).read_bytes()).digest()
        for module in modules_behind(modules, packages)
    ]
    return sha256(b"".join(digests)).hexdigest()


@cache
def _graph(packages: tuple[str, ...]) -> grimp.ImportGraph:
    return grimp.build_graph(*packages, cache_dir=None, exclude_type_checking_imports=True)
