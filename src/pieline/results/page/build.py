"""Assembling the results page: claims, tables, figures, and the way down from each number."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_json, read_text
from pieline.core.named import named
from pieline.reporting.evidence import (
    Json,
    Limits,
    MetricFile,
    Pool,
    check_inputs,
    load_metric_file,
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
class TableView:
    """A table on the page: whose it is, what was declared of it, and its numbers."""

    study: StudyDisplays
    shown: DisplayRecord
    cells: list[ComparedCell]

    @property
    def layout(self) -> str:
        """HTML in the paper's layout."""
        return read_text(self.shown.files["html"])

    @property
    def keys(self) -> list[str]:
        """Columns that tell its numbers apart; one that is empty everywhere tells nothing."""
        keys = self.cells[0].keys if self.cells else ()
        return [key for key in keys if any(cell.keys[key] for cell in self.cells)]

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """How often what keeps its numbers from a comparison, the commonest first."""
        counted = Counter(cell.reason for cell in self.cells if cell.reason)
        return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


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
    tables = [
        TableView(study, shown, read_cells([shown.files["csv"]]))
        for study, shown in displays.of_kind("table")
    ]
    cells = [cell for view in tables for cell in view.cells]
    evidence_of = {
        path: view.study.evidence for view in tables for cell in view.cells for path in cell.metrics
    }
    metrics = [load_metric_file(path) for path in sorted(evidence_of)]
    check_inputs(metrics)
    readers = [evidence_of[metric.path] for metric in metrics]
    judged = read_json(ledger)
    claims = [JudgedClaim.model_validate(claim) for claim in judged["claims"]]
    claim_models = _registry_names(claims, models)
    sample = any("sample data" in cell.reason for cell in cells)
    render_html(
        template,
        path,
        papers=displays.papers(),
        claims=claims,
        counts=judged["counts"],
        claim_models=claim_models,
        tables=tables,
        table_names={view.shown.name for view in tables},
        figures=[
            (study, shown, data_uri(shown.files["png"]))
            for study, shown in displays.of_kind("figure")
        ],
        summary=summary(cells),
        note=displays.mark or (SAMPLE_NOTE if sample else ""),
        labels={model.name: model.label for model in models},
        models=_options(cells, claim_models, models),
        numbers={metric.path: number for number, metric in enumerate(metrics)},
        evidence=_evidence(metrics, readers, limits),
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
    cells: Sequence[ComparedCell],
    claim_models: Mapping[str, Sequence[str]],
    models: Sequence[ModelDescription],
) -> list[tuple[str, str]]:
    """Name and label of each model that the filter offers, in the order of models.yaml.

    Models with a number of ours come first.
    """
    run = {cell.keys.get("model", "") for cell in cells if cell.ours}
    offered = {cell.keys.get("model", "") for cell in cells}.union(*claim_models.values()) - {""}
    labels = {model.name: model.label for model in models}
    order = {name: number for number, name in enumerate(labels)}
    ranked = sorted(offered, key=lambda name: (name not in run, order.get(name, len(order)), name))
    return [
        (name, labels.get(name, name) + ("" if name in run else " (not run)")) for name in ranked
    ]


def _evidence(metrics: Sequence[MetricFile], readers: Sequence[str], limits: Limits) -> str:
    """What the page's script shows of the way down, as JSON that is safe inside HTML.

    `readers` names for each metric file its study's reader, or nothing.
    """
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
            "evidence": named(reader)(metric, pool, limits) if reader else None,
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
