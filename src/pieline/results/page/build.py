"""Build the results page.

The page is one HTML file, which loads the details on a number from a file in a folder next to it.
Each of these files is a script that calls a function with the details, because browsers do not let
a local page read data files.
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
from pieline.reporting.published import PrintedTable, first_table
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
"""Folder of each run that the Makefile makes, and the command that makes it, by title."""
_METRIC_FILES = re.compile(r'(?<=data-metrics=")[^"]*')
"""Metric files of a cell in a table's HTML, separated by spaces."""


class _PrintedNumbers:
    """Base class of a view with numbers that a paper prints."""

    numbers: list[Number]

    @property
    def differing(self) -> list[Number]:
        """The paper's numbers that were compared but not reproduced."""
        return [number for number in self.numbers if number.verdict == "not reproduced"]

    @property
    def reasons(self) -> Counter[str]:
        """Reasons why the paper's numbers were not compared, with the count of each reason."""
        reasons = [first_reason(number) for number in self.numbers]
        return ranked(reason for reason in reasons if reason)


@dataclass(frozen=True)
class TableView(_PrintedNumbers):
    """A table on the page, or a list of printed numbers without a table of ours.

    Attributes:
        study: Study of the table.
        title: Place in the paper; for a table that is not in the paper, its caption.
        caption: Caption of the table; if the run did not make the table, its title and the reason.
        numbers: Numbers that the paper prints in the table.
        shown: Description of the table; None if the run did not make the table.
        cells: Numbers that our table shows; empty if the run did not make the table.
        command: Command that makes the table; if the run did not make it, with the papers' full
            grid.
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
        """Whether the table has cells but all of our values are unknown."""
        return bool(self.cells) and all(cell.ours is None for cell in self.cells)

    def layout(self, number_by_path: Mapping[str, int]) -> str:
        """Return the table as HTML in which numbers replace the paths of metric files.

        Args:
            number_by_path: Number of each metric file. The number is also the name of the file with
                details.
        """

        def replace_paths(match: re.Match[str]) -> str:
            paths = unescape(match[0]).split()
            return " ".join(str(number_by_path[path]) for path in paths)

        assert self.shown
        return _METRIC_FILES.sub(replace_paths, read_text(self.shown.files["html"]))

    @property
    def id(self) -> str:
        """HTML id of the table's section on the page."""
        if self.shown:
            return f"table-{self.shown.name}"
        return f"absent-{self.study.name}-{self.title.replace(' ', '-')}"

    @property
    def needs(self) -> list[str]:
        """Requirements for comparing the numbers that were not compared, most frequent first."""
        return list(ranked(need for number in self.numbers for need in number.needs))

    @property
    def cell_reasons(self) -> Counter[str]:
        """Reasons for the verdicts in cells, with the count of each reason."""
        return ranked(cell.reason for cell in self.cells if cell.reason)


@dataclass(frozen=True)
class StudyView(_PrintedNumbers):
    """A study on the page: the printed numbers, and the tables in the paper's order."""

    study: ShownStudy
    numbers: list[Number]
    tables: list[TableView]

    def section_of(self, number: Number) -> str:
        """Return the HTML id of the section that lists a number."""
        for table in self.tables:
            if number in table.numbers:
                return table.id
        raise ValueError(f"in no table: {number}")


@dataclass(frozen=True)
class ReproducedTable:
    """The printed table with the most reproduced scores, and its numbers that were compared.

    Attributes:
        title: Paper and place of the table.
        rows: Compared numbers by row (label of the model, and run in words), then by measure.
        measures: Measures in the table's order.
        rest: Count of the reproduced numbers that are not in the table.
    """

    title: str
    rows: Mapping[tuple[str, str], Mapping[str, Number]]
    measures: Sequence[str]
    rest: int

    @property
    def has_released(self) -> bool:
        """Whether the authors' run has a score for one of the table's numbers."""
        numbers = [number for row in self.rows.values() for number in row.values()]
        return any(number.released is not None for number in numbers)


def _most_reproduced_table(
    numbers: Iterable[Number], results: RunResults
) -> ReproducedTable | None:
    """Return the table with the most reproduced scores; None if no score was reproduced."""
    numbers = counted(numbers)
    reproduced = [number for number in numbers if number.verdict == "reproduced"]
    scores_by_table = Counter(
        (number.study, number.place) for number in reproduced if number.kind == "score"
    )
    if not scores_by_table:
        return None
    [(table, _)] = scores_by_table.most_common(1)
    study, place = table
    numbers_of_table = [number for number in numbers if (number.study, number.place) == table]
    rows: dict[tuple[str, str], dict[str, Number]] = {}
    for number in numbers_of_table:
        if number.verdict in COMPARED:
            label = results.labels.get(number.model, number.model)
            row = rows.setdefault((label, run_in_words(number)), {})
            row[measure_in_words(number)] = number
    shown_numbers = [number for row in rows.values() for number in row.values()]
    reproduced_in_table = [number for number in shown_numbers if number.verdict == "reproduced"]
    return ReproducedTable(
        title=f"{results.papers()[study]}, {place}",
        rows=rows,
        measures=list(dict.fromkeys(map(measure_in_words, shown_numbers))),
        rest=len(reproduced) - len(reproduced_in_table),
    )


@dataclass(frozen=True)
class FigureView:
    """A figure on the page.

    Attributes:
        study: Study of the figure.
        shown: Description of the figure.
        command: Command that makes the figure.
        digest: SHA-256 of the list of the digests of the figure's inputs; empty if unknown.
    """

    study: ShownStudy
    shown: Shown
    command: str
    digest: str


def _figure_view(study: ShownStudy, shown: Shown, options: Sequence[str]) -> FigureView:
    """Return the view of a figure, with the digest of its inputs if the figure has a sidecar."""
    path = shown.files["png"]
    digest = ""
    if Path(sidecar_of(path)).exists():
        inputs = dict(load_sidecar(path).made_from)
        if inputs:
            digest = sha256_of(canonical_json(inputs).encode())
    command = shlex.join(["snakemake", "--cores", "all", *options, "--", shown.files["pdf"]])
    return FigureView(study, shown, command, digest)


@dataclass(frozen=True)
class Need:
    """A requirement for comparing printed numbers.

    Attributes:
        what: The requirement.
        numbers: Count of the numbers that have the requirement.
        models: Labels of the models of these numbers.
    """

    what: str
    numbers: int
    models: list[str]


@dataclass(frozen=True)
class PageContent:
    """What the page shows.

    Attributes:
        results: What the run shows.
        numbers: All numbers of the run.
        claims: The papers' claims, judged on the printed numbers and on ours.
        catalogue: Printed tables by name.
        absent: Why the run did not make a table, by name of the table.
        models: Descriptions of the papers' models and of the run's models.
    """

    results: RunResults
    numbers: Sequence[Number]
    claims: Sequence[JudgedClaim]
    catalogue: Mapping[str, PrintedTable]
    absent: Mapping[str, str]
    models: Sequence[ModelDescription]

    def study_views(self) -> list[StudyView]:
        """Return the studies with their tables.

        If none of the numbers is printed, tables that the run did not make are omitted.
        """
        catalogue = self.catalogue if counted(self.numbers) else {}
        return [
            _study_view(study, self.results, self.numbers, catalogue, self.absent)
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
        """Return the scores of the user's own models by title of the paper."""
        measures_by_paper = {}
        for study in self.results.studies:
            measures = own_measures(study, self.results, self.numbers)
            if measures:
                measures_by_paper[study.paper] = measures
        return measures_by_paper


def write_page(
    path: str | Path,
    content: PageContent,
    *,
    items: str | Path,
    template: str | Path,
    depth: int,
    other: str | None = None,
) -> None:
    """Write the results page, and the files with details on the numbers.

    Args:
        path: Path of the page.
        content: What the page shows.
        items: Folder for the files with details, whose previous content is deleted.
        template: HTML template.
        depth: Number of documents to show per query.
        other: Path of numbers.csv of another run, to whose page this page links; None for no link.

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
    other_page = os.path.relpath(Path(other).with_name("index.html"), folder) if other else None
    render_html(
        template,
        path,
        **_overview(content, read_numbers(other) if other else ()),
        other_runs=_other_runs(Path(template).parents[1], Path(path)),
        other=other_page,
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
        number_by_path={path: number for number, path in enumerate(sorted(study_of))},
        items=os.path.relpath(items, folder),
        root=os.path.relpath(".", folder),
        beside=lambda file: os.path.relpath(file, folder),
        source=_source,
        document=results.document,
    )


def _overview(content: PageContent, of_other: Sequence[Number]) -> dict[str, Any]:
    """Return the values of template variables for the first screen of the page.

    Args:
        content: What the page shows.
        of_other: Numbers of the other run to which the page links; empty if there is none.
    """
    results, numbers = content.results, content.numbers
    numbers_of_papers = counted(numbers)
    own_evidence = _most_reproduced_table(numbers, results)
    origins: set[str] = set()
    for number in numbers:
        if number.origin:
            origins.update(number.origin.split(", "))
    return {
        "kind": _kind_of_data(results, numbers),
        "mark": results.mark,
        "summary": summarize(numbers),
        "origins": sorted(origins),
        "scores": _scores_by_paper(counted(of_other)),
        "evidence": own_evidence or _most_reproduced_table(of_other, results),
        "is_own_evidence": own_evidence is not None,
        "costs": _costs(numbers_of_papers),
        "needs": _needs(numbers_of_papers, results.labels),
    }


def _other_runs(project: Path, page: Path) -> dict[str, tuple[str, str]]:
    """Return links from a page to the pages of the other runs that the Makefile makes.

    Args:
        project: Folder of the project.
        page: Path of the page.

    Returns:
        The relative path of each page, which may not exist yet, and the command that makes the run,
        by title of the run; empty for a page outside the project.
    """
    if not page.resolve().is_relative_to(project.resolve()):
        return {}
    links = {}
    for title, (folder, command) in _RUNS.items():
        other_page = project / folder / "paper_tables/index.html"
        if other_page.resolve() != page.resolve():
            links[title] = (os.path.relpath(other_page, page.parent), command)
    return links


def _kind_of_data(results: RunResults, numbers: Sequence[Number]) -> str:
    """Return the source of the data; `mixed` if public data is completed by sample data."""
    has_sample_data = any("sample data" in number.reason for number in numbers)
    return "mixed" if has_sample_data and results.data == "released" else results.data


def _scores_by_paper(numbers: Iterable[Number]) -> dict[str, tuple[int, int]]:
    """Count the reproduced and the printed scores of each study that has a reproduced score."""
    scores = [number for number in numbers if number.kind == "score"]
    printed = Counter(number.study for number in scores)
    reproduced = Counter(number.study for number in scores if number.verdict == "reproduced")
    return {study: (count, printed[study]) for study, count in reproduced.items()}


def _needs(numbers: Sequence[Number], labels: Mapping[str, str]) -> list[Need]:
    """Return the requirements for comparing numbers, most frequent requirement first."""
    labels_by_need: dict[str, set[str]] = defaultdict(set)
    for number in numbers:
        for need in number.needs:
            if number.model:
                labels_by_need[need].add(labels.get(number.model, number.model))
    count_by_need = ranked(need for number in numbers for need in number.needs)
    return [
        Need(need, count, sorted(labels_by_need[need])) for need, count in count_by_need.items()
    ]


def _costs(numbers: Iterable[Number]) -> dict[str, int]:
    """Count the numbers that were not compared by what they require (see `COSTS`)."""
    counts = Counter(cost_of(number) for number in numbers if number.verdict not in COMPARED)
    return {cost: counts[cost] for cost in COSTS if counts[cost]}


def _study_view(
    study: ShownStudy,
    results: RunResults,
    numbers: Sequence[Number],
    catalogue: Mapping[str, PrintedTable],
    absent: Mapping[str, str],
) -> StudyView:
    """Return a study with its tables in the paper's order, including tables that were not made.

    Args:
        study: The study.
        results: What the run shows.
        numbers: Numbers of all studies.
        catalogue: Printed tables by name.
        absent: Why the run did not make a table, by name of the table.
    """
    numbers_of_study = [number for number in numbers if number.study == study.name]
    printed_numbers = counted(numbers_of_study)
    numbers_by_table: dict[str, list[Number]] = defaultdict(list)
    for number in printed_numbers:
        numbers_by_table[first_table(number.tables)].append(number)
    printed_tables = {
        table.table: table
        for table in catalogue.values()
        if table.table and table.paper == study.name
    }
    made_tables = {shown.name: shown for shown in study.tables}
    absent_tables = [name for name in printed_tables if name in absent]
    views = []
    for name in _insert_absent(absent_tables, list(made_tables), list(printed_tables)):
        if name in made_tables:
            shown = made_tables[name]
            cells = [number for number in numbers_of_study if name in number.tables]
            command = command_of(name, (), results.options)
            views.append(
                TableView(
                    study, shown.title, shown.caption, numbers_by_table[name], shown, cells, command
                )
            )
        else:
            table = printed_tables[name]
            views.append(_absent_view(study, table, numbers_by_table[name], absent[name]))
    listed_tables = {*printed_tables, *made_tables}
    other_numbers = [
        number for number in printed_numbers if first_table(number.tables) not in listed_tables
    ]
    if other_numbers:
        caption = "Numbers that only the text prints."
        views.append(TableView(study, "Running text", caption, other_numbers))
    return StudyView(study, printed_numbers, views)


def _insert_absent(absent: Sequence[str], made: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Insert the tables that were not made into the list of tables that were made.

    A table that was not made comes before the first table that follows it in the paper.

    Args:
        absent: Names of the printed tables that were not made, in the paper's order.
        made: Names of the tables that were made, in the order of the page.
        printed: Names of all printed tables, in the paper's order.
    """
    place_in_paper = {name: place for place, name in enumerate(printed)}
    waiting = list(absent)
    names = []
    for name in made:
        place = place_in_paper.get(name, 0)
        while waiting and place_in_paper[waiting[0]] < place:
            names.append(waiting.pop(0))
        names.append(name)
    return names + waiting


def _absent_view(
    study: ShownStudy, table: PrintedTable, numbers: list[Number], reason: str
) -> TableView:
    """Return the view of a table that the run did not make.

    The caption contains the reason, unless the table has numbers, which state their own reasons.
    """
    caption = f"{table.title}."
    if not numbers:
        caption += f" Not made: {reason}."
    command = command_of(table.table, (), None)
    return TableView(study, table.number, caption, numbers, command=command)


def _search_terms(
    claims: Iterable[JudgedClaim], models: Iterable[ModelDescription]
) -> dict[str, list[str]]:
    """Return the printed name and the label of each model in a claim, by id of the claim.

    The label of a model without an entry in models.yaml is empty.
    """
    label_by_printed_name = {model.published_as: model.label for model in models}
    terms: dict[str, list[str]] = {}
    for claim in claims:
        terms[claim.id] = []
        for printed_name in claim.models:
            terms[claim.id] += [printed_name, label_by_printed_name.get(printed_name, "")]
    return terms


def _source(maker: str) -> str:
    """Return the path of the file that defines a function, given as `module:function`."""
    spec = find_spec(maker.partition(":")[0])
    return str(spec.origin) if spec else ""


def _write_items(
    folder: Path, study_of: Mapping[str, ShownStudy], depth: int, options: Sequence[str]
) -> None:
    """Write a file with details on each metric file, and a file with the texts of each dataset.

    Args:
        folder: Folder for the files, whose previous content is deleted.
        study_of: Study of each metric file, by path.
        depth: Number of documents to show per query.
        options: Options of snakemake that select the run.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pool = Pool()
    # Details are written one metric file at a time, because they have a row per sentence.
    for number, metric_path in enumerate(sorted(study_of)):
        metric = load_metric_file(metric_path)
        study = study_of[metric_path]
        evidence = None
        texts_file_by_dataset: dict[str, str] = {}
        if study.items:
            evidence = import_object(study.items).evidence(metric, pool, depth)
        if evidence:
            recording = study.recordings.get(evidence["predictions"])
            is_recorded = recording is not None and Path(recording).is_file()
            evidence["recording"] = recording if is_recorded else None
            # Several metric files share the texts of a dataset, so these have their own file. The
            # pool only grows, so the position of a dataset is final.
            for position, dataset in enumerate(pool.texts):
                uses_dataset = dataset in evidence.values()
                if uses_dataset:
                    texts_file_by_dataset[dataset] = f"texts-{position}"
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
                "texts": texts_file_by_dataset,
            },
        )
    for position, texts in enumerate(pool.texts.values()):
        _write_script(folder, f"texts-{position}", texts)


def _write_script(folder: Path, name: str, content: Json) -> None:
    """Write a script that passes JSON, compressed with gzip, to the page."""
    # zlib is used because the header that gzip.compress writes depends on the version of Python.
    gzip_format = 31
    compressed = zlib.compress(canonical_json(content).encode(), level=6, wbits=gzip_format)
    text = base64.b64encode(compressed).decode("ascii")
    write_text(folder / f"{name}.js", f'pieline("{name}", "{text}");\n')


def _settings(fields: Mapping[str, Any]) -> Json:
    """Return the settings and the weights that a metric file states, without null values."""
    conditions = fields.get("conditions") or {}
    return {
        name: value
        for part in ("settings", "weights")
        for name, value in (conditions.get(part) or {}).items()
        if value is not None
    }


def _scores(fields: Mapping[str, Any], *, depth: int = 2) -> Json:
    """Return the numbers in a metric file by name, without breakdowns (`by_…`).

    Args:
        fields: Fields of the metric file.
        depth: Number of levels of nested fields to include.
    """
    numbers: Json = {}
    for name, value in fields.items():
        if name.startswith("by_") or name in {"computed_from", "conditions", "judged", "tuning"}:
            continue
        if isinstance(value, Mapping) and depth:
            for inner_name, number in _scores(value, depth=depth - 1).items():
                numbers[f"{name}.{inner_name}"] = number
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers[name] = value
    return numbers
