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
from functools import cached_property
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pieline.core.files import canonical_json, read_json, read_text, write_text
from pieline.core.named import named
from pieline.reporting.evidence import (
    Json,
    Pool,
    load_metric_file,
)
from pieline.reporting.latex import render_html
from pieline.reporting.models import REHEARSAL_NOTE, ModelDescription
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import COMPARED, ComparedCell, read_cells, summary
from pieline.results.displays import Displays, StudyDisplays
from pieline.study import Table

_SCALARS = (str, int, float, bool)
_LINKED = re.compile(r'(?<=data-metrics=")[^"]*')


@dataclass(frozen=True)
class TableView:
    """A table on the page: whose it is, what was declared of it, and its numbers."""

    study: StudyDisplays
    shown: Table
    cells: list[ComparedCell]
    mark: str = ""

    def layout(self, numbers: Mapping[str, int]) -> str:
        """HTML in the paper's layout; its cells name metric files by their number."""

        def numbered(paths: re.Match[str]) -> str:
            return " ".join(str(numbers[path]) for path in unescape(paths[0]).split())

        return _LINKED.sub(numbered, read_text(self.shown.files["html"]))

    @cached_property
    def verdicts(self) -> Counter[str]:
        """How many of its numbers have which verdict."""
        return Counter(cell.verdict for cell in self.cells)

    @cached_property
    def why(self) -> Counter[str]:
        """What above all keeps how many of its numbers from a comparison, the commonest first."""
        return _ranked(_why(cell, self.mark) for cell in self.cells if cell.verdict not in COMPARED)

    @property
    def reasons(self) -> Counter[str]:
        """The same with all that is to be said."""
        return _ranked(
            cell.reason.removeprefix(self.mark).strip() for cell in self.cells if cell.reason
        )


@dataclass(frozen=True)
class StudyView:
    """A study in the overview: its tables, and the numbered reasons that they refer to."""

    study: StudyDisplays
    tables: list[TableView]

    @cached_property
    def verdicts(self) -> Counter[str]:
        """How many of its numbers have which verdict."""
        return sum((table.verdicts for table in self.tables), Counter())

    @cached_property
    def why(self) -> Counter[str]:
        """What keeps how many of its numbers from a comparison, the commonest first."""
        return _ranked(reason for table in self.tables for reason in table.why.elements())

    def letters(self, table: TableView) -> list[int]:
        """The numbers, from 1, of a table's reasons."""
        order = list(self.why)
        return sorted(order.index(reason) + 1 for reason in table.why)


def write_page(
    path: str | Path,
    *,
    items: str | Path,
    template: str | Path,
    displays: Displays,
    ledger: str | Path,
    models: Sequence[ModelDescription],
    depth: int,
) -> None:
    """Write the results page and the files that its numbers open.

    Args:
        path: of the page.
        items: folder of those files, beside the page; emptied first.
        template: HTML template.
        displays: tables and figures of the run.
        ledger: claims.json.
        models: of models.yaml.
        depth: documents shown for a query.

    Raises:
        UserError: a file behind the numbers is not the one that they were computed from.
    """
    tables = [
        TableView(study, shown, read_cells([shown.files["csv"]]), displays.mark)
        for study in displays.studies
        for shown in study.tables
    ]
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
        summary=summary(cell.verdict for cell in cells),
        studies=[
            StudyView(study, [view for view in tables if view.study == study])
            for study in displays.studies
        ],
        papers=displays.papers(),
        claims=claims,
        words=_searched(claims, models),
        labels=[model.label for model in models],
        tables=tables,
        table_names={view.shown.name for view in tables},
        figures=[(study, shown) for study in displays.studies for shown in study.figures],
        numbers={path: number for number, path in enumerate(sorted(study_of))},
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


def _why(cell: ComparedCell, mark: str) -> str:
    """The first of a cell's reasons."""
    first = cell.reason.removeprefix(mark).strip().partition("; ")[0].removeprefix("not run: ")
    # Texts that stand beside each other have no difference.
    is_text = cell.ours and cell.printed and not cell.difference
    return f"stated, not measured: {first}" if is_text else first


def _ranked(reasons: Iterable[str]) -> Counter[str]:
    counted = Counter(reasons)
    return Counter(dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))))


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
        evidence = named(study.items).evidence(metric, pool, depth) if study.items else None
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
