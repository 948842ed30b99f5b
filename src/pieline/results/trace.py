"""Show how a table is made: its rules, what their scripts call, and its files in a run."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError, nearest
from pieline.core.measures import Measure
from pieline.core.records import load_record
from pieline.core.sidecars import Sidecar, sidecar_of
from pieline.reporting.numbers import Number, read_numbers

NOT_SHOWN = "pieline.core."
"""Modules whose functions read, write and check files for all jobs."""


@dataclass(frozen=True)
class Step:
    """A place in the code.

    Attributes:
        name: Name of the rule, script, function or measure.
        place: `file:line` relative to the project.
        text: First sentence of its docstring.
        level: Depth: 0 for a rule, 1 for what it runs.
    """

    name: str
    place: str
    text: str
    level: int

    def __str__(self) -> str:
        line = f"{'  ' * self.level}{self.name}  {self.place}"
        return f"{line}\n{'  ' * self.level}    {self.text}" if self.text else line


def rule_graph(mermaid: str) -> dict[str, set[str]]:
    """Return each rule of Snakemake's graph (`--rulegraph mermaid-js`) with the rules before it."""
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", mermaid, flags=re.MULTILINE))
    graph: dict[str, set[str]] = {name: set() for name in sorted(names.values())}
    for one, other in re.findall(r"^\s*(id\d+) --> (id\d+)$", mermaid, flags=re.MULTILINE):
        graph[names[other]].add(names[one])
    return graph


def rules_in_order(mermaid: str) -> list[str]:
    """Return the rules of Snakemake's graph in running order."""
    return list(TopologicalSorter(rule_graph(mermaid)).static_order())


def steps_of_rules(rules: Iterable[str], root: Path) -> Iterator[Step]:
    """Yield each rule and the functions that its script calls.

    Args:
        rules: Names of rules.
        root: The project's folder.
    """
    blocks = _rule_blocks(root)
    for rule in rules:
        place, block = blocks[rule] if rule in blocks else blocks[""]
        yield Step(rule, place, _first_sentence(_docstring(block)), 0)
        script = re.search(r'"\.\./(scripts/\w+\.py)"', block)
        if not script:
            continue
        yield Step(script[1], f"{script[1]}:1", _first_sentence(_module(root / script[1])), 1)
        for function in _called(root / script[1], root):
            yield function
            yield from _called_by(function, root)
        if asked := re.search(r'LLM_TASKS\["(\w+)"\]', block):
            yield from _task(asked[1], root)


def _rule_blocks(root: Path) -> dict[str, tuple[str, str]]:
    """Return place and text of each rule.

    A rule that `use`s another one has the other's text. The rule with a computed name (`name:`),
    which takes files from archives, has an empty name.
    """
    blocks: dict[str, tuple[str, str]] = {}
    uses: dict[str, tuple[str, str]] = {}
    for file in sorted((root / "rules").glob("*.smk")):
        lines = file.read_text(encoding="utf-8").splitlines()
        starts = []
        for number, line in enumerate(lines):
            if found := re.match(r"\s*(?:rule|checkpoint)\b ?(\w*):|use rule (\w+) as (\w+)", line):
                starts.append((number, found))
        bounds = [number for number, _ in starts] + [len(lines)]
        for (number, found), end in zip(starts, bounds[1:], strict=True):
            name, used, new_name = found.groups()
            place = f"rules/{file.name}:{number + 1}"
            if used:
                uses[new_name] = place, used
            else:
                blocks[name] = place, "\n".join(lines[number:end])
    for new_name, (place, used) in uses.items():
        blocks[new_name] = place, blocks[used][1]
    return blocks


def _docstring(block: str) -> str:
    found = re.search(r'"""(.*?)"""', block, flags=re.DOTALL)
    return found[1] if found else ""


def _first_sentence(text: str | ast.AST) -> str:
    """Return the first sentence of a docstring, or of that of a module, class or function."""
    if isinstance(text, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(text) or ""
    words = " ".join(str(text).split())
    return re.split(r"(?<=\.) ", words, maxsplit=1)[0]


@cache
def _module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return module and original name of each name that is imported from this library."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pieline.")
        for alias in node.names
    }


def _called(
    file: Path, root: Path, part: ast.AST | None = None, *, level: int = 2
) -> Iterator[Step]:
    """Yield the functions of the library that a file, or a part of it, calls, in order."""
    tree = _module(file)
    imported = {node.name: (_name(file, root), node.name) for node in _functions(file, root)}
    imported |= _imported(tree)
    calls = [node for node in ast.walk(part or tree) if isinstance(node, ast.Call)]
    seen = set()
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        module, original = imported.get(name, ("", ""))
        if name in seen or not module or module.startswith(NOT_SHOWN):
            continue
        seen.add(name)
        if found := _definition(module, original, root, level):
            yield found


def _functions(file: Path, root: Path) -> list[ast.FunctionDef]:
    """Return the public functions of a module of the library; none of a script."""
    if not file.is_relative_to(root / "src"):
        return []
    functions = [node for node in _module(file).body if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if not node.name.startswith("_")]


def _called_by(function: Step, root: Path) -> Iterator[Step]:
    """Yield the functions that a study's function calls."""
    file = root / function.place.partition(":")[0]
    if {"studies", "beyond"} & set(file.parts):
        [node] = [each for each in _functions(file, root) if each.name == function.name]
        yield from _called(file, root, node, level=function.level + 1)


def _name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root / "src").with_suffix("").parts)


def _file(module: str, root: Path) -> Path:
    place = root / "src" / Path(*module.split("."))
    package = place / "__init__.py"
    return package if package.exists() else place.with_suffix(".py")


def _definition(module: str, name: str, root: Path, level: int = 2) -> Step | None:
    """Return where a module defines a function; None for a class or another value."""
    file = _file(module, root)
    for node in _module(file).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            place = f"{file.relative_to(root)}:{node.lineno}"
            return Step(name, place, _first_sentence(node), level)
    return None


def _task(name: str, root: Path) -> Iterator[Step]:
    """Yield the class of a kind of questions, and what its methods call."""
    for file in sorted((root / "src/pieline/studies").glob("*/tasks.py")):
        tree = _module(file)
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "LLMTaskSpec"):
                continue
            given = {word.arg: word.value for word in node.keywords}
            values = [*node.args, *given.values()]
            if not any(isinstance(each, ast.Constant) and each.value == name for each in values):
                continue
            task = given.get("task") or node.args[1]
            module, original = _imported(tree)[ast.unparse(task)]
            yield from _class(module, original, root)


def _class(module: str, name: str, root: Path) -> Iterator[Step]:
    file = _file(module, root)
    for node in _module(file).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            place = f"{file.relative_to(root)}:{node.lineno}"
            yield Step(name, place, _first_sentence(node), 2)
            yield from _called(file, root, node, level=3)


def steps_of_display(name: str, root: Path) -> Iterator[Step]:
    """Yield where a table or figure is declared, and the functions that make it.

    Raises:
        UserError: There is no such table or figure.
    """
    declared = _displays(root)
    if name not in declared:
        raise UserError("no such table or figure", where=name, hint=nearest(name, declared))
    file, node = declared[name]
    kind, place = ast.unparse(node.func).lower(), f"{file.relative_to(root)}:{node.lineno}"
    yield Step(f"{kind} {name}", place, ast.literal_eval(node.args[2]), 0)
    yield from _makers(node, file, root)


@cache
def _displays(root: Path) -> dict[str, tuple[Path, ast.Call]]:
    """Return file and declaration of each table and figure; a table replaces a figure's name."""
    return {
        str(node.args[0].value): (file, node)
        for file in sorted((root / "src/pieline").rglob("*.py"))
        if {"studies", "beyond"} & set(file.parts)
        for node in ast.walk(_module(file))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("Table", "Figure")
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def output_of(name: str, display: Step) -> str:
    """Return the file that Snakemake makes for a display."""
    folder = "figures/" if display.name.startswith("figure") else ""
    return f"paper_tables/{folder}{name}.{'pdf' if folder else 'tex'}"


def _makers(declared: ast.Call, file: Path, root: Path) -> Iterator[Step]:
    """Yield the functions that select a display's numbers and that make it."""
    given = {word.arg: word.value for word in declared.keywords}
    fields = ("name", "place", "caption", "make", "inputs", "numbers")
    given |= dict(zip(fields, declared.args, strict=False))
    module = _name(file, root)
    imported = _imported(_module(file))
    for field in ("inputs", "numbers", "make"):
        for node in ast.walk(given.get(field, ast.Constant(None))):
            if isinstance(node, ast.Name):
                found = _definition(*imported.get(node.id, (module, node.id)), root, level=1)
                if found:
                    yield found


def measures_of(display: str, name: str, root: Path) -> list[Step]:
    """Return where the measures with this name that a display may show are declared.

    Raises:
        UserError: The modules behind the display declare none.
    """
    file = root / next(steps_of_display(display, root)).place.partition(":")[0]
    import_module(_name(file, root))
    found, names = [], set()
    for module in sorted(key for key in sys.modules if key.startswith("pieline.")):
        place = _file(module, root)
        if not place.exists():  # loaded from another folder
            continue
        for variable, line in _assigned(place).items():
            measures = list(_measures(getattr(sys.modules[module], variable, None)))
            names |= {measure.name for measure in measures}
            if any(measure.name == name for measure in measures):
                where = f"{place.relative_to(root)}:{line}"
                found.append(Step(f"measure {name}", where, f"in {variable}", 0))
    if not found:
        raise UserError("no such measure", where=name, hint=nearest(name, names))
    return found


@cache
def _assigned(file: Path) -> dict[str, int]:
    """Return the lines of a module's own variables."""
    lines: dict[str, int] = {}
    for node in _module(file).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            lines |= {name.id: name.lineno for name in names if isinstance(name, ast.Name)}
    return lines


def _measures(value: object) -> Iterator[Measure[Any]]:
    """Yield the measures in a value and in the containers in it."""
    if isinstance(value, Measure):
        yield value
    elif isinstance(value, Mapping):
        yield from _measures([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _measures(each)


def files_of(numbers: Path, table: str, measure: str) -> list[str]:
    """Return the files behind the first number of a table in a finished run, that number first.

    Args:
        numbers: The run's frame of numbers (`paper_tables/numbers.csv`).
        table: Name of the table.
        measure: Name of the measure; empty for any.
    """
    if not numbers.exists():
        return []
    shown = [
        number
        for number in read_numbers(numbers)
        if table in number.tables and number.files and measure in ("", number.measure)
    ]
    if not shown:
        return []
    folder = numbers.parent.parent
    lines, waiting, seen = [_described(shown[0])], list(shown[0].files), set()
    while waiting:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        # Recordings are in the project's folder, whatever the folder of the run.
        place = Path(path) if path.startswith("recordings/") else folder / path
        lines.append(path if place.exists() else f"{path}  (not in this run)")
        if Path(sidecar_of(folder / path)).exists():
            made = load_record(sidecar_of(folder / path), Sidecar)
            waiting += [*made.made_from, *made.recordings]
    return lines


def _described(number: Number) -> str:
    keys = (number.model, number.setting, number.query_mode, number.language, number.measure)
    return f"{' '.join(filter(None, keys))} = {number.ours}"
