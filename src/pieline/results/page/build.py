"""Assembling the results page: claims, tables, figures, and the way down from each number."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_json, read_text
from pieline.reporting.evidence import (
    Json,
    Limits,
    MetricFile,
    Pool,
    Reader,
    check_inputs,
    load_metric_file,
    load_reader,
)
from pieline.reporting.latex import render_html
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.comparison import ComparedCell, read_cells, summary
from pieline.results.displays import DisplayRecord, Displays, StudyDisplays

_SCALARS = (str, int, float, bool)
_LABELS = {
    "r_precision": "R-Precision",
    "ndcg_at_10": "nDCG@10",
    "instruction_sentence": "instruction + sentence",
    "instruction_span": "instruction + span",
    "interval_95": "95 % interval",
}
"""Names of columns and values that are not just their words."""


@dataclass(frozen=True)
class Row:
    """A number of a table on the page; `metrics` are the numbers of its metric files."""

    cell: ComparedCell
    model: str
    metrics: list[int]


@dataclass(frozen=True)
class TableView:
    """A table on the page.

    Attributes:
        study: whose it is.
        shown: what was declared of it.
        layout: HTML in the paper's layout.
        keys: columns that tell its numbers apart.
        rows: its numbers.
        not_run: how many there are none of ours of.
        reasons: how often what keeps its numbers from a comparison.
    """

    study: StudyDisplays
    shown: DisplayRecord
    layout: str
    keys: list[str]
    rows: list[Row]
    not_run: int
    reasons: list[tuple[str, int]]


@dataclass(frozen=True)
class FigureView:
    """A figure on the page, as a data URI."""

    study: StudyDisplays
    shown: DisplayRecord
    source: str


class _Metrics:
    """The metric files that numbers come from, numbered in the order of their paths."""

    def __init__(self, cells: Mapping[str, Sequence[ComparedCell]], displays: Displays) -> None:
        readers = {
            study.name: load_reader(study.evidence) for study in displays.studies if study.evidence
        }
        study_of = {
            path: study.name
            for study, shown in displays.of_kind("table")
            for cell in cells[shown.name]
            for path in cell.metrics
        }
        self.files = [load_metric_file(path) for path in sorted(study_of)]
        self.readers = [readers.get(study_of[metric.path]) for metric in self.files]
        self.numbers = {metric.path: number for number, metric in enumerate(self.files)}


def write_page(
    path: str | Path,
    *,
    template: str | Path,
    displays: Displays,
    ledger: str | Path,
    models: Sequence[ModelDescription],
    limits: Limits,
) -> None:
    """Write the results page: one file, which loads nothing.

    Args:
        path: of the page.
        template: HTML template.
        displays: tables and figures of the run.
        ledger: claims.json.
        models: of models.yaml.
        limits: how much of the predictions is shown.

    Raises:
        UserError: a file behind the numbers is not the one that they were computed from.
    """
    cells = {shown.name: read_cells([shown.files["csv"]]) for _, shown in displays.of_kind("table")}
    metrics = _Metrics(cells, displays)
    check_inputs(metrics.files)
    tables = [
        _table(study, shown, cells[shown.name], metrics.numbers)
        for study, shown in displays.of_kind("table")
    ]
    every_cell = [cell for view in tables for cell in cells[view.shown.name]]
    claims, counts = _ledger(ledger)
    sample = any("sample data" in cell.reason for cell in every_cell)
    render_html(
        template,
        path,
        papers=displays.papers(),
        claims=claims,
        counts=counts,
        claim_models=_registry_names(claims, models),
        tables=tables,
        table_names=set(cells),
        figures=[
            FigureView(study, shown, data_uri(shown.files["png"]))
            for study, shown in displays.of_kind("figure")
        ],
        summary=summary(every_cell),
        note=SAMPLE_NOTE if sample else "",
        labels={model.name: model.label for model in models},
        models=_options(tables, claims, models),
        evidence=_evidence(metrics.files, metrics.readers, limits),
        limits=limits,
        named=lambda text: _LABELS.get(text, str(text).replace("_", " ")),
    )


def data_uri(path: str | Path) -> str:
    """A PNG as a data URI.

    Raises:
        UserError: the file is missing.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError("no such file", where=path, mend="run snakemake again") from None
    return f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"


def _table(
    study: StudyDisplays,
    shown: DisplayRecord,
    cells: Sequence[ComparedCell],
    numbers: Mapping[str, int],
) -> TableView:
    keys = list(cells[0].keys) if cells else []
    reasons = Counter(cell.reason for cell in cells if cell.reason)
    return TableView(
        study=study,
        shown=shown,
        layout=read_text(shown.files["html"]),
        # A column that is empty everywhere tells nothing.
        keys=[key for key in keys if any(cell.keys[key] for cell in cells)],
        rows=[
            Row(
                cell,
                cell.keys.get("model", ""),
                [numbers[path] for path in cell.metrics if cell.ours],
            )
            for cell in cells
        ],
        not_run=sum(cell.verdict == "not run" for cell in cells),
        reasons=sorted(reasons.items(), key=lambda item: (-item[1], item[0])),
    )


def _ledger(path: str | Path) -> tuple[list[JudgedClaim], Json]:
    ledger = read_json(path)
    return [JudgedClaim.model_validate(claim) for claim in ledger["claims"]], ledger["counts"]


def _registry_names(
    claims: Iterable[JudgedClaim], models: Sequence[ModelDescription]
) -> dict[str, list[str]]:
    """By claim: the names in models.yaml of the models whose numbers it uses."""
    names: dict[str, list[str]] = {}
    for model in models:
        if model.published_as:
            names.setdefault(model.published_as, []).append(model.name)
    return {
        claim.id: sorted(name for printed in claim.models for name in names.get(printed, [printed]))
        for claim in claims
    }


def _options(
    tables: Sequence[TableView], claims: Sequence[JudgedClaim], models: Sequence[ModelDescription]
) -> list[tuple[str, str]]:
    """Name and label of each model that the filter offers, in the order of models.yaml.

    Models with a number of ours come first.
    """
    shown = {row.model: bool(row.cell.ours) for view in tables for row in view.rows if row.model}
    for view in tables:
        for row in view.rows:
            if row.model and row.cell.ours:
                shown[row.model] = True
    labels = {model.name: model.label for model in models}
    for names in _registry_names(claims, models).values():
        for name in names:
            shown.setdefault(name, False)
    order = {name: number for number, name in enumerate(labels)}
    ranked = sorted(shown, key=lambda name: (not shown[name], order.get(name, len(order)), name))
    return [
        (name, labels.get(name, name) + ("" if shown[name] else " (not run)")) for name in ranked
    ]


def _evidence(
    metrics: Sequence[MetricFile], readers: Sequence[Reader | None], limits: Limits
) -> str:
    """What the page's script shows of the way down, as JSON that is safe inside HTML."""
    pool = Pool()
    files: dict[str, Any] = {}
    for number, (metric, reader) in enumerate(zip(metrics, readers, strict=True)):
        files[str(number)] = {
            "path": metric.path,
            "digest": metric.digest,
            "inputs": metric.inputs,
            "fields": {
                name: value
                for name, value in metric.fields.items()
                if isinstance(value, _SCALARS) and name != "computed_from"
            },
            "scores": _scores(metric.fields),
            "evidence": reader(metric, pool, limits) if reader else None,
        }
    text = canonical_json({"files": files, "texts": pool.texts})
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _scores(fields: Mapping[str, Any], *, depth: int = 2) -> Json:
    """The numbers of a metric file, without what is given by PIE or subject or sentence."""
    found: Json = {}
    for name, value in fields.items():
        if name.startswith("by_") or name in {"computed_from", "judged", "tuning"}:
            continue
        if isinstance(value, Mapping) and depth:
            inner = _scores(value, depth=depth - 1)
            found |= {f"{name}.{key}": number for key, number in inner.items()}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    return found
