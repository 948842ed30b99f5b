"""Assembling the results page: ledger, tables, figures, and the way down from each number."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jinja2

from pieline.core.errors import UserError
from pieline.core.files import canonical_json, read_json, write_text
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.results.artifacts import Artifact, made_artifacts
from pieline.results.claims.judgement import JudgedClaim
from pieline.results.claims.tables import PAPERS
from pieline.results.comparison import ComparedCell, read_cells, summary
from pieline.results.page.evidence import (
    Json,
    Limits,
    MetricFile,
    Pool,
    check_inputs,
    evidence_of,
    load_metric_file,
)

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
    """A row of a table on the page; `metrics` are the numbers of its metric files."""

    cell: ComparedCell
    model: str
    metrics: list[int]


@dataclass(frozen=True)
class TableView:
    """A table on the page; `reasons` say how often what keeps its numbers from a comparison."""

    artifact: Artifact
    keys: list[str]
    rows: list[Row]
    not_run: int
    reasons: list[tuple[str, int]]


@dataclass(frozen=True)
class FigureView:
    """A figure on the page, as a data URI."""

    artifact: Artifact
    source: str


def write_page(
    path: str | Path,
    *,
    template: str | Path,
    known: Sequence[Artifact],
    tables: Sequence[str | Path],
    figures: Sequence[str | Path],
    ledger: str | Path,
    metrics: Sequence[str | Path],
    models: Sequence[ModelDescription],
    limits: Limits,
) -> None:
    """Write the results page: one file, which loads nothing.

    Args:
        path: of the page.
        template: HTML template.
        known: what templates/artifacts.yaml lists.
        tables: the run's CSVs.
        figures: its PNGs.
        ledger: claims.json.
        metrics: its metric files; numbers of tables lead to them.
        models: of models.yaml.
        limits: how much of the predictions is shown.

    Raises:
        UserError: a file behind the numbers is not the one that they were computed from.
    """
    metric_files = [load_metric_file(name) for name in sorted(map(str, metrics))]
    check_inputs(metric_files)
    cells = read_cells(tables)
    of_table: dict[str, list[ComparedCell]] = {}
    for cell in cells:
        of_table.setdefault(cell.table, []).append(cell)
    table_views: list[TableView] = []
    figure_views: list[FigureView] = []
    for artifact, file in made_artifacts(known, tables, figures):
        if artifact.kind == "figure":
            figure_views.append(FigureView(artifact, data_uri(file)))
        else:
            table_views.append(_table(artifact, of_table.get(artifact.name, []), metric_files))
    used = sorted({number for view in table_views for row in view.rows for number in row.metrics})
    labels = {model.name: model.label for model in models}
    claims, counts = _ledger(ledger)
    sample = any("sample data" in cell.reason for cell in cells)
    text = _environment(template).render(
        papers=PAPERS,
        claims=claims,
        counts=counts,
        claim_models=_registry_names(claims, models),
        tables=table_views,
        table_names={view.artifact.name for view in table_views},
        figures=figure_views,
        summary=summary(cells),
        note=SAMPLE_NOTE if sample else "",
        labels=labels,
        models=_options(table_views, claims, models),
        evidence=_evidence(metric_files, used, limits),
        limits=limits,
    )
    write_text(path, text)


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


def metric_files_of(
    artifact: Artifact, keys: Mapping[str, str], metrics: Sequence[MetricFile]
) -> list[int]:
    """The metric files that a row of a table comes from, by their place in `metrics`."""
    source = artifact.metrics
    if source is None:
        return []
    named = {
        field: source.called[field].format_map(dict(keys)) if field in source.called else value
        for field, value in {**dict.fromkeys(source.called, ""), **keys}.items()
    }
    found = []
    for number, metric in enumerate(metrics):
        fields = {
            name: _plain(value)
            for name, value in metric.fields.items()
            if isinstance(value, _SCALARS)
        }
        # A row that says nothing of a field is made from all its values; an empty key says nothing.
        wanted = source.where | {
            name: value for name, value in named.items() if name in fields and value
        }
        if fnmatch(metric.path, f"results/metrics/{source.path}") and all(
            fields.get(name) == value for name, value in wanted.items()
        ):
            found.append(number)
    return found


def _plain(value: str | float | bool) -> str:
    return str(value)


def _table(
    artifact: Artifact, cells: Sequence[ComparedCell], metrics: Sequence[MetricFile]
) -> TableView:
    keys = list(cells[0].keys) if cells else []
    rows = [
        Row(
            cell=cell,
            model=cell.keys.get("model", ""),
            metrics=metric_files_of(artifact, cell.keys, metrics) if cell.ours else [],
        )
        for cell in cells
    ]
    # A column that is empty everywhere tells nothing.
    keys = [key for key in keys if any(row.cell.keys[key] for row in rows)]
    reasons = Counter(row.cell.reason for row in rows if row.cell.reason)
    return TableView(
        artifact=artifact,
        keys=keys,
        rows=rows,
        not_run=sum(row.cell.verdict == "not run" for row in rows),
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


def _evidence(metrics: Sequence[MetricFile], used: Iterable[int], limits: Limits) -> str:
    """What the page's script shows of the way down, as JSON that is safe inside HTML."""
    pool = Pool()
    files: dict[str, Any] = {}
    for number in used:
        metric = metrics[number]
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
            "evidence": evidence_of(metric, pool, limits),
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


def _environment(template: str | Path) -> jinja2.Template:
    place = Path(template)
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(place.parent),
    )
    environment.filters["slug"] = lambda text: str(text).replace(" ", "-")
    environment.filters["named"] = lambda text: _LABELS.get(text, str(text).replace("_", " "))
    try:
        return environment.get_template(place.name)
    except jinja2.TemplateSyntaxError as error:
        raise UserError(
            f"not a valid template: {error.message}",
            where=f"{template}:{error.lineno}",
            mend="correct this line",
        ) from None
