"""Assembling the results page: what the run is, tables, claims, figures, and what is behind each.

The page is one HTML file. What lies behind its numbers stands in files beside it, which it loads
when a reader asks for it, also from disk: scripts that call a function, since browsers let no page
read other files there.
"""

import base64
import os
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pieline.core.files import canonical_json, read_json, read_text, write_text
from pieline.core.imports import import_object
from pieline.reporting.evidence import (
    Json,
    Pool,
    load_metric_file,
)
from pieline.reporting.latex import render_html
from pieline.reporting.models import REHEARSAL_NOTE, ModelDescription
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.claims.tables import PrintedTable
from pieline.results.comparison import ComparedCell, read_cells
from pieline.results.displays import Displays, StudyDisplays
from pieline.results.numbers import (
    STATES,
    PrintedNumber,
    describe,
    kinds_of,
    ranked,
    read_numbers,
    summarize,
)
from pieline.study import Table

_SCALARS = (str, int, float, bool)
_LINKED = re.compile(r'(?<=data-metrics=")[^"]*')


@dataclass(frozen=True)
class TableView:
    """A table on the page; without `shown` and cells one that the run did not make.

    Attributes:
        study: whose it is.
        title: its place in the paper, or what it shows.
        caption: one sentence, or why it was not made.
        numbers: of the paper.
        shown: what was declared of it.
        cells: its numbers of ours.
    """

    study: StudyDisplays
    title: str
    caption: str
    numbers: list[PrintedNumber]
    shown: Table | None = None
    cells: Sequence[ComparedCell] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has cells, and no number of ours in them."""
        return bool(self.cells) and not any(cell.ours for cell in self.cells)

    def layout(self, places: Mapping[str, int]) -> str:
        """HTML in the paper's layout; its cells name metric files by their number."""

        def numbered(paths: re.Match[str]) -> str:
            return " ".join(str(places[path]) for path in unescape(paths[0]).split())

        assert self.shown
        return _LINKED.sub(numbered, read_text(self.shown.files["html"]))

    @property
    def id(self) -> str:
        """Of its section on the page."""
        return (
            f"table-{self.shown.name}"
            if self.shown
            else f"absent-{self.study.name}-{self.title.replace(' ', '-')}"
        )

    @property
    def reasons(self) -> Counter[str]:
        """Why how many of the paper's numbers were not compared."""
        return ranked(number.reason for number in self.numbers if number.reason)

    @property
    def needs(self) -> list[str]:
        """What these take."""
        return list(ranked(need for number in self.numbers for need in number.needs))

    def cell_reasons(self, mark: str) -> Counter[str]:
        """Why how many of its cells were not compared."""
        return ranked(cell.reason.removeprefix(mark).strip() for cell in self.cells if cell.reason)


@dataclass(frozen=True)
class StudyView:
    """A study on the page: its printed numbers, and its tables in the order of the paper."""

    study: StudyDisplays
    numbers: list[PrintedNumber]
    tables: list[TableView]

    @property
    def differing(self) -> list[PrintedNumber]:
        """The numbers that were compared and not reproduced."""
        return [number for number in self.numbers if number.verdict == "not reproduced"]

    @property
    def reasons(self) -> Counter[str]:
        """Why how many numbers were not compared."""
        return ranked(number.reason for number in self.numbers if number.reason)


@dataclass(frozen=True)
class Need:
    """Something that printed numbers take to be compared."""

    what: str
    numbers: int
    models: list[str]


def write_page(
    path: str | Path,
    *,
    items: str | Path,
    template: str | Path,
    displays: Displays,
    ledger: str | Path,
    numbers: str | Path,
    catalogue: Mapping[str, PrintedTable],
    absent: Mapping[str, str],
    models: Sequence[ModelDescription],
    depth: int,
    other: str | None = None,
) -> None:
    """Write the results page and the files that its numbers open.

    Args:
        path: of the page.
        items: folder of those files, beside the page; emptied first.
        template: HTML template.
        displays: tables and figures of the run.
        ledger: claims.json.
        numbers: printed_numbers.csv.
        catalogue: the printed tables.
        absent: why CSVs of ours with printed numbers were not made, by name.
        models: of models.yaml.
        depth: documents shown for a query.
        other: printed_numbers.csv of another run, to which the page links.

    Raises:
        UserError: a file behind the numbers is not the one that they were computed from.
    """
    counted = read_numbers(numbers)
    studies = [
        _study_view(
            study,
            [number for number in counted if number.paper == study.name],
            catalogue if counted else {},
            absent,
        )
        for study in displays.studies
    ]
    tables = [table for study in studies for table in study.tables if table.shown]
    cells = [cell for view in tables for cell in view.cells]
    study_of = {path: view.study for view in tables for cell in view.cells for path in cell.metrics}
    _write_items(Path(items), study_of, depth)
    claims = [JudgedClaim.model_validate(claim) for claim in read_json(ledger)["claims"]]
    folder = Path(path).parent
    render_html(
        template,
        path,
        kind=_kind(displays, cells),
        mark=displays.mark,
        summary=summarize(counted),
        archives=displays.archives,
        other=other and os.path.relpath(Path(other).with_name("index.html"), folder),
        scores=_scores_by_paper(read_numbers(other)) if other else {},
        describe=describe,
        kinds_of=kinds_of,
        states=STATES,
        studies=studies,
        needs=_needs(counted, {model.published_as: model.label for model in reversed(models)}),
        papers=displays.papers(),
        claims=claims,
        words=_searched(claims, models),
        labels=[model.label for model in models],
        table_names={view.shown.name for view in tables if view.shown},
        figures=[(study, shown) for study in displays.studies for shown in study.figures],
        places={path: number for number, path in enumerate(sorted(study_of))},
        items=os.path.relpath(items, folder),
        root=os.path.relpath(".", folder),
        beside=lambda file: os.path.relpath(file, folder),
        source=_source,
        document=displays.document,
    )


def _kind(displays: Displays, cells: Iterable[ComparedCell]) -> str:
    """What the run is: rehearsal, sample, mixed, or what the data are called."""
    if displays.mark == REHEARSAL_NOTE:
        return "rehearsal"
    of_sample = any("sample data" in cell.reason for cell in cells)
    return "mixed" if of_sample and displays.data == "released" else displays.data


def _scores_by_paper(numbers: Iterable[PrintedNumber]) -> dict[str, tuple[int, int]]:
    """How many printed scores were reproduced, and how many there are, of papers with any."""
    scores = [number for number in numbers if number.kind == "score"]
    printed = Counter(number.paper for number in scores)
    equal = Counter(number.paper for number in scores if number.verdict == "reproduced")
    return {paper: (count, printed[paper]) for paper, count in equal.items()}


def _needs(numbers: Sequence[PrintedNumber], labels: Mapping[str | None, str]) -> list[Need]:
    """What the most numbers take comes first; models are named by their labels."""
    counts = ranked(need for number in numbers for need in number.needs)
    return [
        Need(
            need,
            times,
            sorted(
                {
                    labels.get(number.model, number.model)
                    for number in numbers
                    if number.model and need in number.needs
                }
            ),
        )
        for need, times in counts.items()
    ]


def _study_view(
    study: StudyDisplays,
    numbers: list[PrintedNumber],
    catalogue: Mapping[str, PrintedTable],
    absent: Mapping[str, str],
) -> StudyView:
    """Put a study's tables into the paper's order, with those that were not made."""
    printed = {
        table.ours.files[0]: table
        for table in catalogue.values()
        if table.ours and table.paper == study.name
    }
    missing = {file: table for file, table in printed.items() if file in absent}

    def of(file: str) -> list[PrintedNumber]:
        return [number for number in numbers if number.file == file]

    def not_made(file: str) -> TableView:
        table = missing.pop(file)
        why = "" if of(file) else f" Not made: {absent[file]}."
        return TableView(study, table.number, f"{table.title}.{why}", of(file))

    tables = []
    for shown in study.tables:
        order = list(printed)
        before = order[: order.index(shown.name)] if shown.name in order else []
        tables += [not_made(file) for file in before if file in missing]
        cells = read_cells([shown.files["csv"]])
        tables.append(TableView(study, shown.title, shown.caption, of(shown.name), shown, cells))
    tables += [not_made(file) for file in list(missing)]
    files = {*printed, *(shown.name for shown in study.tables)}
    if rest := [number for number in numbers if number.file not in files]:
        tables.append(TableView(study, "Running text", "Numbers that only the text prints.", rest))
    return StudyView(study, numbers, tables)


def _searched(
    claims: Iterable[JudgedClaim], models: Iterable[ModelDescription]
) -> dict[str, list[str]]:
    """By claim: the models whose numbers it uses, as printed and as the tables label them."""
    labels = {model.published_as: model.label for model in models}
    return {
        claim.id: [word for name in claim.models for word in (name, labels.get(name, ""))]
        for claim in claims
    }


def _source(maker: str) -> str:
    """The file of the function that made a table or figure."""
    spec = find_spec(maker.partition(":")[0])
    return str(spec.origin) if spec else ""


def _recording(study: StudyDisplays, predictions: str) -> str | None:
    """The file of the answers behind predictions, unless no language model was asked for them."""
    for pattern, recordings in study.recordings.items():
        groups = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern))
        if found := re.fullmatch(groups, predictions):
            path = recordings.format(**found.groupdict())
            return path if Path(path).is_file() else None
    return None


def _write_items(folder: Path, study_of: Mapping[str, StudyDisplays], depth: int) -> None:
    """Write what lies behind the metric file of each path, and the texts that they share."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pool = Pool()
    # One metric file in memory at a time: each holds a decision for every sentence.
    for number, metric in enumerate(map(load_metric_file, sorted(study_of))):
        study = study_of[metric.path]
        evidence = import_object(study.items).evidence(metric, pool, depth) if study.items else None
        if evidence:
            evidence["recording"] = _recording(study, evidence["predictions"])
        _write_script(
            folder,
            str(number),
            {
                "path": metric.path,
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
    """Write JSON, compressed, as a script that gives it to the page."""
    # What gzip.compress writes into the header depends on the version of Python.
    packed = zlib.compress(canonical_json(content).encode(), level=6, wbits=31)
    text = base64.b64encode(packed).decode("ascii")
    write_text(folder / f"{name}.js", f'pieline("{name}", "{text}");\n')


def _settings(fields: Mapping[str, Any]) -> Json:
    """What a metric file says of settings and weights, without what is unset."""
    conditions = fields.get("conditions") or {}
    return {
        name: value
        for part in ("settings", "weights")
        for name, value in (conditions.get(part) or {}).items()
        if value is not None
    }


def _scores(fields: Mapping[str, Any], *, depth: int = 2) -> Json:
    """The numbers of a metric file, without what is given by PIE or subject or sentence."""
    found: Json = {}
    for name, value in fields.items():
        if name.startswith("by_") or name in {"computed_from", "conditions", "judged", "tuning"}:
            continue
        if isinstance(value, Mapping) and depth:
            inner = _scores(value, depth=depth - 1)
            found |= {f"{name}.{key}": number for key, number in inner.items()}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    return found
