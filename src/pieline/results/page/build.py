"""Build the results page.

The page is one HTML file. Details on its numbers are loaded on demand from files next to the page.
These files are scripts that call a function, since browsers do not let a local page read data.
"""

import base64
import os
import re
import shlex
import shutil
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pieline.core.files import canonical_json, read_text, sha256_of, write_text
from pieline.core.imports import import_object
from pieline.core.sidecars import load_sidecar, sidecar_of
from pieline.reporting.evidence import Json, Pool, load_metric_file
from pieline.reporting.latex import render_html
from pieline.reporting.models import ModelDescription
from pieline.reporting.numbers import COMPARED, STATES, Number, read_numbers
from pieline.reporting.published import PrintedTable
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.numbers import (
    COSTS,
    command_of,
    cost_of,
    counted,
    describe,
    first_reason,
    in_words,
    kinds_of,
    measure_in_words,
    ranked,
    run_in_words,
    summarize,
    trace_command,
)
from pieline.results.page.own_models import OwnMeasure, own_measures
from pieline.results.run_results import RunResults, Shown, ShownStudy

_SCALARS = (str, int, float, bool)
_RUNS = {
    "sample data": (".", "make reproduce"),
    "shipped rankings": ("runs/shipped", "make reproduce"),
    "public data": ("runs/released", "make verify"),
}
"""Folder of the project's own runs, and the command that makes them."""
_LINKED = re.compile(r'(?<=data-metrics=")[^"]*')


@dataclass(frozen=True)
class TableView:
    """A table on the page, or a list of printed numbers without a table of ours.

    Attributes:
        study: Study of the table.
        title: Place in the paper, or the caption of a table that is not in the paper.
        caption: Caption of the table, or its title with the reason why the table was not made.
        numbers: Numbers that the paper prints in this table.
        shown: Declaration of the table; None if the run did not make it.
        cells: Numbers that our table shows; empty if the run did not make the table.
        command: Command that makes the table, in the papers' full grid if this run did not make it.
    """

    study: ShownStudy
    title: str
    caption: str
    numbers: list[Number]
    shown: Shown | None = None
    cells: Sequence[Number] = ()
    command: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the table has cells but no number of ours."""
        return bool(self.cells) and all(cell.ours is None for cell in self.cells)

    def layout(self, places: Mapping[str, int]) -> str:
        """Return the table as HTML, with metric files replaced by their numbers in `places`."""

        def numbered(paths: re.Match[str]) -> str:
            return " ".join(str(places[path]) for path in unescape(paths[0]).split())

        assert self.shown
        return _LINKED.sub(numbered, read_text(self.shown.files["html"]))

    @property
    def id(self) -> str:
        """HTML id of the table's section."""
        return (
            f"table-{self.shown.name}"
            if self.shown
            else f"absent-{self.study.name}-{self.title.replace(' ', '-')}"
        )

    @property
    def differing(self) -> list[Number]:
        """Numbers that were compared but not reproduced; not all of them are in the layout."""
        return _differing(self.numbers)

    @property
    def reasons(self) -> Counter[str]:
        """Reasons why the paper's numbers were not compared, with their counts."""
        return ranked(filter(None, map(first_reason, self.numbers)))

    @property
    def needs(self) -> list[str]:
        """Requirements for comparing the numbers that were not compared, most frequent first."""
        return list(ranked(need for number in self.numbers for need in number.needs))

    @property
    def cell_reasons(self) -> Counter[str]:
        """Reasons stated in cells, with their counts."""
        return ranked(cell.reason for cell in self.cells if cell.reason)


@dataclass(frozen=True)
class StudyView:
    """A study on the page: its printed numbers, and its tables in the paper's order."""

    study: ShownStudy
    numbers: list[Number]
    tables: list[TableView]

    @property
    def differing(self) -> list[Number]:
        """Numbers that were compared but not reproduced."""
        return _differing(self.numbers)

    def section_of(self, number: Number) -> str:
        """Return the HTML id of the section that lists a number."""
        return next(table.id for table in self.tables if number in table.numbers)

    @property
    def reasons(self) -> Counter[str]:
        """Reasons why numbers were not compared, with their counts."""
        return ranked(filter(None, map(first_reason, self.numbers)))


@dataclass(frozen=True)
class ReproducedTable:
    """The table with the most reproduced scores, and all of its numbers that were compared.

    Attributes:
        title: Paper and place of the table.
        rows: Compared numbers by model and run in words, then by measure.
        measures: Measures in the table's order.
        rest: Count of reproduced numbers elsewhere.
    """

    title: str
    rows: Mapping[tuple[str, str], Mapping[str, Number]]
    measures: Sequence[str]
    rest: int

    @property
    def has_released(self) -> bool:
        """Whether the authors' scores are known for some numbers."""
        return any(one.released is not None for row in self.rows.values() for one in row.values())


def _evidence(numbers: Iterable[Number], results: RunResults) -> ReproducedTable | None:
    """Return the table with most reproduced scores; None if no score was reproduced."""
    numbers = counted(numbers)
    reproduced = [number for number in numbers if number.verdict == "reproduced"]
    tables = Counter(
        (number.study, number.place) for number in reproduced if number.kind == "score"
    )
    if not tables:
        return None
    ((study, place), _) = tables.most_common(1)[0]
    rows: dict[tuple[str, str], dict[str, Number]] = {}
    for number in numbers:
        if (number.study, number.place) == (study, place) and number.verdict in COMPARED:
            label = results.labels.get(number.model, number.model)
            row = rows.setdefault((label, run_in_words(number)), {})
            row[measure_in_words(number)] = number
    of_table = sum(one.verdict == "reproduced" for row in rows.values() for one in row.values())
    return ReproducedTable(
        title=f"{results.papers()[study]}, {place}",
        rows=rows,
        measures=list(dict.fromkeys(measure for row in rows.values() for measure in row)),
        rest=len(reproduced) - of_table,
    )


@dataclass(frozen=True)
class FigureView:
    """A figure on the page.

    Attributes:
        study: Study of the figure.
        shown: Declaration of the figure.
        command: Command that makes it.
        digest: SHA-256 of the list of its inputs' digests; empty without a sidecar.
    """

    study: ShownStudy
    shown: Shown
    command: str
    digest: str


def _figure_view(study: ShownStudy, shown: Shown, options: Sequence[str]) -> FigureView:
    path = shown.files["png"]
    made_from = dict(load_sidecar(path).made_from) if Path(sidecar_of(path)).exists() else {}
    return FigureView(
        study,
        shown,
        shlex.join(["snakemake", "--cores", "all", *options, "--", shown.files["pdf"]]),
        sha256_of(canonical_json(made_from).encode()) if made_from else "",
    )


def _differing(numbers: Iterable[Number]) -> list[Number]:
    return [number for number in numbers if number.verdict == "not reproduced"]


@dataclass(frozen=True)
class Need:
    """Requirement for comparing printed numbers, their count, and labels of the affected models."""

    what: str
    numbers: int
    models: list[str]


@dataclass(frozen=True)
class PageContent:
    """What the page shows.

    Attributes:
        results: What the run shows.
        numbers: All numbers of the run.
        claims: The papers' claims.
        catalogue: Printed tables by name.
        absent: Reasons why CSVs with printed numbers were not made, by name.
        models: Descriptions of the papers' and the run's models.
    """

    results: RunResults
    numbers: Sequence[Number]
    claims: Sequence[JudgedClaim]
    catalogue: Mapping[str, PrintedTable]
    absent: Mapping[str, str]
    models: Sequence[ModelDescription]

    def study_views(self) -> list[StudyView]:
        """Return the studies with their tables; without printed tables if no number is printed."""
        printed = self.catalogue if counted(self.numbers) else {}
        return [
            _study_view(study, self.results, self.numbers, printed, self.absent)
            for study in self.results.studies
        ]

    def figure_views(self) -> list[FigureView]:
        """Return the figures of all studies."""
        return [
            _figure_view(study, shown, self.results.options)
            for study in self.results.studies
            for shown in study.figures
        ]

    def own_by_paper(self) -> dict[str, list[OwnMeasure]]:
        """Return the scores of the run's own models, by the title of the paper."""
        measures = {
            study.paper: own_measures(study, self.results, self.numbers)
            for study in self.results.studies
        }
        return {paper: own for paper, own in measures.items() if own}


def write_page(
    path: str | Path,
    content: PageContent,
    *,
    items: str | Path,
    template: str | Path,
    depth: int,
    other: str | None = None,
) -> None:
    """Write the results page and the files with details on its numbers.

    Args:
        path: Path of the page.
        content: What the page shows.
        items: Folder for the detail files; its previous content is deleted.
        template: HTML template.
        depth: Number of documents shown per query.
        other: Path of numbers.csv of another run, to which the page links.

    Raises:
        UserError: A file behind the numbers has changed since they were computed.
    """
    results = content.results
    studies = content.study_views()
    tables = [table for study in studies for table in study.tables if table.shown]
    study_of: dict[str, ShownStudy] = {}
    for table in tables:
        for cell in table.cells:
            study_of |= dict.fromkeys(cell.files, table.study)
    _write_items(Path(items), study_of, depth, results.options)
    folder = Path(path).parent
    render_html(
        template,
        path,
        **_overview(content, read_numbers(other) if other else ()),
        other_runs=_other_runs(Path(template).parents[1], Path(path)),
        other=other and os.path.relpath(Path(other).with_name("index.html"), folder),
        own=content.own_by_paper(),
        describe=describe,
        kinds_of=kinds_of,
        states=STATES,
        studies=studies,
        papers=results.papers(),
        claims=content.claims,
        words=_search_terms(content.claims, content.models),
        in_words=lambda number: in_words(number, results.labels),
        labels=[model.label for model in content.models],
        table_names={view.shown.name for view in tables if view.shown},
        figures=content.figure_views(),
        own_names=sorted(results.others),
        trace=lambda table, measure: trace_command(table, measure, results.options),
        places={path: number for number, path in enumerate(sorted(study_of))},
        items=os.path.relpath(items, folder),
        root=os.path.relpath(".", folder),
        beside=lambda file: os.path.relpath(file, folder),
        source=_source,
        document=results.document,
    )


def _overview(content: PageContent, of_other: Sequence[Number]) -> dict[str, Any]:
    """Return the values of the page's first screen by name.

    Args:
        content: What the page shows.
        of_other: Numbers of the other run; empty without one.
    """
    results, numbers = content.results, content.numbers
    of_papers = counted(numbers)
    evidence = _evidence(numbers, results)
    return {
        "kind": _kind(results, numbers),
        "mark": results.mark,
        "summary": summarize(numbers),
        "origins": sorted({name for each in numbers for name in each.origin.split(", ") if name}),
        "scores": _scores_by_paper(counted(of_other)),
        "evidence": evidence or _evidence(of_other, results),
        "is_own_evidence": evidence is not None,
        "costs": _costs(of_papers),
        "needs": _needs(of_papers, results.labels),
    }


def _other_runs(project: Path, page: Path) -> dict[str, tuple[str, str]]:
    """Return links to the pages of the project's other runs, which may not exist yet, by title.

    Each link comes with the command that makes the run. A run in a folder outside the project has
    no links.
    """
    if not page.resolve().is_relative_to(project.resolve()):
        return {}
    pages = {
        title: (project / folder / "paper_tables/index.html", command)
        for title, (folder, command) in _RUNS.items()
    }
    return {
        title: (os.path.relpath(other, page.parent), command)
        for title, (other, command) in pages.items()
        if other.resolve() != page.resolve()
    }


def _kind(results: RunResults, numbers: Sequence[Number]) -> str:
    """Return the data source, or `mixed` for public data with some cells of sample data."""
    of_sample = any("sample data" in number.reason for number in numbers)
    return "mixed" if of_sample and results.data == "released" else results.data


def _scores_by_paper(numbers: Iterable[Number]) -> dict[str, tuple[int, int]]:
    """Return the counts of reproduced and of printed scores, for papers with reproduced scores."""
    scores = [number for number in numbers if number.kind == "score"]
    printed = Counter(number.study for number in scores)
    equal = Counter(number.study for number in scores if number.verdict == "reproduced")
    return {paper: (count, printed[paper]) for paper, count in equal.items()}


def _needs(numbers: Sequence[Number], labels: Mapping[str, str]) -> list[Need]:
    """Return the requirements for comparing numbers, most frequent first."""
    models: dict[str, set[str]] = {}
    for number in numbers:
        for need in number.needs:
            labels_of_need = models.setdefault(need, set())
            if number.model:
                labels_of_need.add(labels.get(number.model, number.model))
    counts = ranked(need for number in numbers for need in number.needs)
    return [Need(need, times, sorted(models[need])) for need, times in counts.items()]


def _costs(numbers: Iterable[Number]) -> dict[str, int]:
    """Return the counts of the numbers that were not compared by what they cost (see `COSTS`)."""
    counts = Counter(cost_of(number) for number in numbers if number.verdict not in COMPARED)
    return {cost: counts[cost] for cost in COSTS if counts[cost]}


def _study_view(
    study: ShownStudy,
    results: RunResults,
    every: Sequence[Number],
    catalogue: Mapping[str, PrintedTable],
    absent: Mapping[str, str],
) -> StudyView:
    """Return a study with its tables in the paper's order, including tables that were not made."""
    of_study = [number for number in every if number.study == study.name]
    numbers = counted(of_study)
    by_table: dict[str, list[Number]] = defaultdict(list)
    for number in numbers:
        by_table[number.tables[0] if number.tables else ""].append(number)
    printed = {
        table.table: table
        for table in catalogue.values()
        if table.table and table.paper == study.name
    }
    order = list(printed)
    waiting = [name for name in order if name in absent]
    views = []
    for shown in study.tables:
        place = order.index(shown.name) if shown.name in order else 0
        while waiting and order.index(waiting[0]) < place:
            name = waiting.pop(0)
            views.append(_absent_view(study, printed[name], by_table[name], absent[name]))
        cells = [number for number in of_study if shown.name in number.tables]
        command = command_of(shown.name, (), results.options)
        own = by_table[shown.name]
        views.append(TableView(study, shown.title, shown.caption, own, shown, cells, command))
    views += [_absent_view(study, printed[name], by_table[name], absent[name]) for name in waiting]
    listed = {*printed, *(shown.name for shown in study.tables)}
    rest = [number for number in numbers if not listed.intersection(number.tables[:1])]
    if rest:
        views.append(TableView(study, "Running text", "Numbers that only the text prints.", rest))
    return StudyView(study, numbers, views)


def _absent_view(
    study: ShownStudy, table: PrintedTable, numbers: list[Number], reason: str
) -> TableView:
    """Return a table that the run did not make, with the reason unless its numbers state theirs."""
    why = "" if numbers else f" Not made: {reason}."
    command = command_of(table.table, (), None)
    return TableView(study, table.number, f"{table.title}.{why}", numbers, command=command)


def _search_terms(
    claims: Iterable[JudgedClaim], models: Iterable[ModelDescription]
) -> dict[str, list[str]]:
    """Return search terms by claim id: printed names and labels of the models in the claim."""
    labels = {model.published_as: model.label for model in models}
    return {
        claim.id: [word for name in claim.models for word in (name, labels.get(name, ""))]
        for claim in claims
    }


def _source(maker: str) -> str:
    """Return the path of the file that defines the maker of a table or figure."""
    spec = find_spec(maker.partition(":")[0])
    return str(spec.origin) if spec else ""


def _write_items(
    folder: Path, study_of: Mapping[str, ShownStudy], depth: int, options: Sequence[str]
) -> None:
    """Write the details on each metric file, and the texts that they share."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pool = Pool()
    # Only one metric file is kept in memory, since its details have a row per sentence.
    for number, metric in enumerate(map(load_metric_file, sorted(study_of))):
        study = study_of[metric.path]
        evidence = import_object(study.items).evidence(metric, pool, depth) if study.items else None
        if evidence:
            recordings = study.recordings.get(evidence["predictions"], "")
            evidence["recording"] = recordings if Path(recordings).is_file() else None
        _write_script(
            folder,
            str(number),
            {
                "path": metric.path,
                "command": command_of(metric.path, [metric.path], options),
                "digest": metric.digest,
                "inputs": metric.inputs,
                "fields": {
                    name: value
                    for name, value in metric.fields.items()
                    if isinstance(value, _SCALARS)
                },
                "settings": _settings(metric.fields),
                "scores": _scores(metric.fields),
                "evidence": evidence,
                "texts": {
                    path: f"texts-{place}"
                    for place, path in enumerate(pool.texts)
                    if evidence and path in evidence.values()
                },
            },
        )
    for place, texts in enumerate(pool.texts.values()):
        _write_script(folder, f"texts-{place}", texts)


def _write_script(folder: Path, name: str, content: Json) -> None:
    """Write compressed JSON as a script that passes the JSON to the page."""
    # zlib is used because the header that gzip.compress writes depends on the version of Python.
    packed = zlib.compress(canonical_json(content).encode(), level=6, wbits=31)
    text = base64.b64encode(packed).decode("ascii")
    write_text(folder / f"{name}.js", f'pieline("{name}", "{text}");\n')


def _settings(fields: Mapping[str, Any]) -> Json:
    """Return the settings and weights in a metric file, without null values."""
    conditions = fields.get("conditions") or {}
    return {
        name: value
        for part in ("settings", "weights")
        for name, value in (conditions.get(part) or {}).items()
        if value is not None
    }


def _scores(fields: Mapping[str, Any], *, depth: int = 2) -> Json:
    """Return the numbers in a metric file up to a depth, without breakdowns (`by_…`)."""
    numbers: Json = {}
    for name, value in fields.items():
        if name.startswith("by_") or name in {"computed_from", "conditions", "judged", "tuning"}:
            continue
        if isinstance(value, Mapping) and depth:
            inner = _scores(value, depth=depth - 1)
            numbers |= {f"{name}.{key}": number for key, number in inner.items()}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers[name] = value
    return numbers
