"""Show how a table is made: the rules, the functions that their scripts call, and the files."""

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

_COMPUTED_NAME = ""
"""Key of the one rule whose name is computed (`name:`), among the texts of rules."""
_STUDY_FOLDERS = {"studies", "beyond"}
"""Folders of the packages that contain a study's own code."""
NOT_SHOWN = "pieline.core."
"""Prefix of the modules that a trace omits, because all jobs use their functions."""


@dataclass(frozen=True)
class Step:
    """A place in the code.

    Attributes:
        name: Name of the rule, script, function or measure.
        place: `file:line` relative to the project.
        text: First sentence of the docstring of this rule, script or function.
        level: Depth of indentation; 0 for a rule.
    """

    name: str
    place: str
    text: str
    level: int

    def __str__(self) -> str:
        indentation = "  " * self.level
        line = f"{indentation}{self.name}  {self.place}"
        return f"{line}\n{indentation}    {self.text}" if self.text else line


def rule_graph(mermaid: str) -> dict[str, set[str]]:
    """Parse the graph of rules that Snakemake prints with `--rulegraph mermaid-js`.

    Returns:
        The rules on whose outputs each rule depends, by name of the rule.
    """
    rule_by_id = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]$", mermaid, flags=re.MULTILINE))
    graph: dict[str, set[str]] = {rule: set() for rule in sorted(rule_by_id.values())}
    edges = re.findall(r"^\s*(id\d+) --> (id\d+)$", mermaid, flags=re.MULTILINE)
    for earlier_id, later_id in edges:
        graph[rule_by_id[later_id]].add(rule_by_id[earlier_id])
    return graph


def rules_in_order(mermaid: str) -> list[str]:
    """Return the rules of Snakemake's graph in the order in which they run."""
    return list(TopologicalSorter(rule_graph(mermaid)).static_order())


def steps_of_rules(rules: Iterable[str], root: Path) -> Iterator[Step]:
    """Yield the steps of each rule: the rule, its script, and the functions that the script calls.

    Args:
        rules: Names of rules.
        root: Folder of the project.
    """
    blocks = _rule_blocks(root)
    for rule in rules:
        # The name of one rule is computed, so a rule that is not in the files is this rule.
        place, block = blocks[rule if rule in blocks else _COMPUTED_NAME]
        yield Step(rule, place, _first_sentence(_docstring(block)), 0)
        script_match = re.search(r'"\.\./(scripts/\w+\.py)"', block)
        if not script_match:
            continue
        script = script_match[1]
        yield Step(script, f"{script}:1", _first_sentence(_parse_module(root / script)), 1)
        for step in _called_functions(root / script, root):
            yield step
            yield from _functions_called_by(step, root)
        task_match = re.search(r'LLM_TASKS\["(\w+)"\]', block)
        if task_match:
            yield from _steps_of_task(task_match[1], root)


def _rule_blocks(root: Path) -> dict[str, tuple[str, str]]:
    """Return the place (`file:line`) and the text of each rule, by name of the rule.

    A rule that reuses another rule (`use rule a as b`) has the text of that rule. The rule that
    takes files from archives has a computed name, so its key is `_COMPUTED_NAME`.
    """
    blocks: dict[str, tuple[str, str]] = {}
    place_and_reused_by_rule: dict[str, tuple[str, str]] = {}
    start_of_rule = re.compile(r"\s*(?:rule|checkpoint)\b ?(\w*):|use rule (\w+) as (\w+)")
    for file in sorted((root / "rules").glob("*.smk")):
        lines = file.read_text(encoding="utf-8").splitlines()
        matches = [(index, start_of_rule.match(line)) for index, line in enumerate(lines)]
        starts = [(index, match) for index, match in matches if match]
        # A rule ends where the next rule starts.
        ends = [*(index for index, _ in starts), len(lines)][1:]
        for (start, match), end in zip(starts, ends, strict=True):
            name, reused_rule, new_name = match.groups()
            place = f"rules/{file.name}:{start + 1}"
            if reused_rule:
                place_and_reused_by_rule[new_name] = place, reused_rule
            else:
                # The group of an absent name is `_COMPUTED_NAME`.
                blocks[name] = place, "\n".join(lines[start:end])
    for new_name, (place, reused_rule) in place_and_reused_by_rule.items():
        _, text = blocks[reused_rule]
        blocks[new_name] = place, text
    return blocks


def _docstring(block: str) -> str:
    """Return the first docstring in the text of a rule; empty if there is none."""
    docstring = re.search(r'"""(.*?)"""', block, flags=re.DOTALL)
    return docstring[1] if docstring else ""


def _first_sentence(source: str | ast.AST) -> str:
    """Return the first sentence of a docstring.

    Args:
        source: The docstring, or the module, class or function that has the docstring.
    """
    if isinstance(source, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        docstring = ast.get_docstring(source) or ""
    else:
        docstring = str(source)
    text_on_one_line = " ".join(docstring.split())
    return re.split(r"(?<=\.) ", text_on_one_line, maxsplit=1)[0]


@cache
def _parse_module(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported_names(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Map each name that a file imports from this library to its module and original name."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pieline.")
        for alias in node.names
    }


def _called_functions(
    file: Path, root: Path, part: ast.AST | None = None, *, level: int = 2
) -> Iterator[Step]:
    """Yield a step for each library function that a file calls, in the order of the first calls.

    Args:
        file: Script or module.
        root: Folder of the project.
        part: Part of the file to search, such as a function; None for the entire file.
        level: Level of the steps.
    """
    tree = _parse_module(file)
    # The module of each function that the file can call, and the function's name there.
    source_by_name = {
        node.name: (_module_name(file, root), node.name) for node in _public_functions(file, root)
    }
    source_by_name |= _imported_names(tree)
    calls = [node for node in ast.walk(part or tree) if isinstance(node, ast.Call)]
    seen = set()
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = getattr(node.func, "id", "")
        if name in seen or name not in source_by_name:
            continue
        seen.add(name)
        module, original = source_by_name[name]
        if module.startswith(NOT_SHOWN):
            continue
        step = _find_function(module, original, root, level)
        if step:
            yield step


def _public_functions(file: Path, root: Path) -> list[ast.FunctionDef]:
    """Return the public functions of a module of the library; for a script, an empty list."""
    if not file.is_relative_to(root / "src"):
        return []
    functions = [node for node in _parse_module(file).body if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if not node.name.startswith("_")]


def _functions_called_by(function: Step, root: Path) -> Iterator[Step]:
    """Yield a step for each library function that a function calls.

    For a function outside the studies' packages, nothing is yielded.

    Args:
        function: Step of the calling function.
        root: Folder of the project.
    """
    path, _, _ = function.place.partition(":")
    file = root / path
    is_in_study = any(folder in file.parts for folder in _STUDY_FOLDERS)
    if is_in_study:
        for node in _public_functions(file, root):
            if node.name == function.name:
                yield from _called_functions(file, root, node, level=function.level + 1)


def _module_name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root / "src").with_suffix("").parts)


def _module_file(module: str, root: Path) -> Path:
    place = root / "src" / Path(*module.split("."))
    package = place / "__init__.py"
    return package if package.exists() else place.with_suffix(".py")


def _find_function(module: str, name: str, root: Path, level: int = 2) -> Step | None:
    """Return the step of a function that a module defines; None for a class or another value."""
    file = _module_file(module, root)
    for node in _parse_module(file).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            place = f"{file.relative_to(root)}:{node.lineno}"
            return Step(name, place, _first_sentence(node), level)
    return None


def _steps_of_task(kind: str, root: Path) -> Iterator[Step]:
    """Yield a step for the class that asks a kind of question, and for each function it calls.

    Args:
        kind: Name of the kind of question to language models.
        root: Folder of the project.
    """
    for file in sorted((root / "src/pieline/studies").glob("*/tasks.py")):
        tree = _parse_module(file)
        for call in _calls_of(tree, "LLMTaskSpec"):
            keywords = {keyword.arg: keyword.value for keyword in call.keywords}
            arguments = [*call.args, *keywords.values()]
            constants = [
                argument.value for argument in arguments if isinstance(argument, ast.Constant)
            ]
            if kind not in constants:
                continue
            # `task` is the second parameter of `LLMTaskSpec`.
            task = keywords["task"] if "task" in keywords else call.args[1]
            module, original = _imported_names(tree)[ast.unparse(task)]
            yield from _steps_of_class(module, original, root)


def _steps_of_class(module: str, name: str, root: Path) -> Iterator[Step]:
    """Yield a step for a class, and for each library function that its methods call."""
    file = _module_file(module, root)
    for node in _parse_module(file).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            place = f"{file.relative_to(root)}:{node.lineno}"
            yield Step(name, place, _first_sentence(node), level=2)
            yield from _called_functions(file, root, node, level=3)


def steps_of_display(name: str, root: Path) -> Iterator[Step]:
    """Yield steps for the declaration of a table or figure, and for the functions that make it.

    Raises:
        UserError: No table or figure has this name.
    """
    declarations = _declared_displays(root)
    if name not in declarations:
        raise UserError("no such table or figure", where=name, hint=nearest(name, declarations))
    file, declaration = declarations[name]
    kind = ast.unparse(declaration.func).lower()
    place = f"{file.relative_to(root)}:{declaration.lineno}"
    # The third parameter of `Table` and `Figure` is the caption.
    caption = ast.literal_eval(declaration.args[2])
    yield Step(f"{kind} {name}", place, caption, 0)
    yield from _steps_of_makers(declaration, file, root)


@cache
def _declared_displays(root: Path) -> dict[str, tuple[Path, ast.Call]]:
    """Return the file and the declaration of each table and figure by name.

    A declaration is a call such as `Table("jam_drift", …)` in a package of a study.
    """
    declarations = {}
    for file in sorted((root / "src/pieline").rglob("*.py")):
        if _STUDY_FOLDERS.isdisjoint(file.parts):
            continue
        for call in _calls_of(_parse_module(file), "Table", "Figure"):
            name = call.args[0] if call.args else None
            if isinstance(name, ast.Constant):
                declarations[str(name.value)] = (file, call)
    return declarations


def _calls_of(tree: ast.Module, *names: str) -> Iterator[ast.Call]:
    """Yield the calls of the functions or classes with these names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
            yield node


def output_of(name: str, display: Step) -> str:
    """Return the path of the file that Snakemake makes for a table or figure.

    Args:
        name: Name of the table or figure.
        display: Step of the display's declaration.
    """
    is_figure = display.name.startswith("figure ")
    return f"paper_tables/figures/{name}.pdf" if is_figure else f"paper_tables/{name}.tex"


def _steps_of_makers(declaration: ast.Call, file: Path, root: Path) -> Iterator[Step]:
    """Yield a step for each function in the arguments `inputs`, `numbers` and `make` of a display.

    Args:
        declaration: Declaration of the table or figure.
        file: File that contains the declaration.
        root: Folder of the project.
    """
    arguments = {keyword.arg: keyword.value for keyword in declaration.keywords}
    parameters = ("name", "place", "caption", "make", "inputs", "numbers")
    # The last parameters may be given by keyword.
    arguments |= dict(zip(parameters, declaration.args, strict=False))
    own_module = _module_name(file, root)
    imported = _imported_names(_parse_module(file))
    for parameter in ("inputs", "numbers", "make"):
        if parameter not in arguments:
            continue
        for node in ast.walk(arguments[parameter]):
            if isinstance(node, ast.Name):
                module, name = imported.get(node.id, (own_module, node.id))
                step = _find_function(module, name, root, level=1)
                if step:
                    yield step


def measures_of(display: str, name: str, root: Path) -> list[Step]:
    """Return a step for each declaration of a measure that a table or figure may show.

    Args:
        display: Name of the table or figure.
        name: Name of the measure.
        root: Folder of the project.

    Raises:
        UserError: The modules that the table or figure depends on declare no such measure.
    """
    # The first step is the declaration, whose module imports the modules with its measures.
    declaration = next(steps_of_display(display, root))
    path, _, _ = declaration.place.partition(":")
    import_module(_module_name(root / path, root))
    steps: list[Step] = []
    known_names: set[str] = set()
    for module in sorted(key for key in sys.modules if key.startswith("pieline.")):
        file = _module_file(module, root)
        if not file.exists():  # loaded from another folder
            continue
        for variable, line in _lines_of_variables(file).items():
            value = getattr(sys.modules[module], variable, None)
            names = {measure.name for measure in _measures_in(value)}
            known_names |= names
            if name in names:
                place = f"{file.relative_to(root)}:{line}"
                steps.append(Step(f"measure {name}", place, f"in {variable}", 0))
    if not steps:
        raise UserError("no such measure", where=name, hint=nearest(name, known_names))
    return steps


@cache
def _lines_of_variables(file: Path) -> dict[str, int]:
    """Return the line of each variable that a module assigns at its top level, by name."""
    lines: dict[str, int] = {}
    for node in _parse_module(file).body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            nodes = target.elts if isinstance(target, ast.Tuple) else [target]
            lines |= {node.id: node.lineno for node in nodes if isinstance(node, ast.Name)}
    return lines


def _measures_in(value: object) -> Iterator[Measure[Any]]:
    """Yield the measures in a value, which may be a measure or nested containers of measures."""
    if isinstance(value, Measure):
        yield value
    elif isinstance(value, Mapping):
        yield from _measures_in([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _measures_in(element)


def files_of(numbers: Path, table: str, measure: str) -> list[str]:
    """Return lines for the terminal: a table's first number, and all files behind this number.

    The result is empty if the run has no frame of numbers, or if no number of the table has metric
    files and the measure.

    Args:
        numbers: Path of the run's frame of numbers (`paper_tables/numbers.csv`).
        table: Name of the table.
        measure: Name of the measure; empty for any measure.
    """
    if not numbers.exists():
        return []
    matching_numbers = [
        number
        for number in read_numbers(numbers)
        if table in number.tables and number.files and measure in ("", number.measure)
    ]
    if not matching_numbers:
        return []
    run_folder = numbers.parent.parent
    number = matching_numbers[0]
    lines = [_describe_number(number)]
    seen = set()
    unread_paths = list(number.files)
    while unread_paths:
        path = unread_paths.pop(0)
        if path in seen:
            continue
        seen.add(path)
        # Recordings are in the project's folder, whatever the folder of the run is.
        is_recording = path.startswith("recordings/")
        file = Path(path) if is_recording else run_folder / path
        lines.append(path if file.exists() else f"{path}  (not in this run)")
        sidecar_path = sidecar_of(run_folder / path)
        if Path(sidecar_path).exists():
            sidecar = load_record(sidecar_path, Sidecar)
            unread_paths += [*sidecar.made_from, *sidecar.recordings]
    return lines


def _describe_number(number: Number) -> str:
    keys = (number.model, number.setting, number.query_mode, number.language, number.measure)
    return f"{' '.join(filter(None, keys))} = {number.ours}"
