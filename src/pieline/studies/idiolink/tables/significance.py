"""Which differences between query modes are more than chance. Not in the paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pieline.reporting.latex import render_table
from pieline.reporting.models import SAMPLE_NOTE, ModelDescription
from pieline.reporting.printed import Comparison, compare, rounded, write_comparisons
from pieline.studies.idiolink.metrics.significance import ModeSignificance
from pieline.studies.idiolink.tables.zero_shot import METRICS, NOT_RELEASED


def write_significance_table(
    found: Sequence[ModeSignificance],
    models: Sequence[ModelDescription],
    *,
    template: str | Path,
    tex: str | Path,
    csv: str | Path,
) -> None:
    """Differences between query modes (points) with their p-values, as LaTeX and CSV.

    Args:
        found: one a model and seed.
        models: their descriptions; a fine-tuned model has that of what it was made from.
        template: LaTeX template.
        tex: LaTeX output.
        csv: CSV output.
    """
    labels = {model.name: model.label for model in models}
    released = all(item.dataset_is_released for item in found)
    obstacles = [] if released else [NOT_RELEASED]
    comparisons: list[tuple[Mapping[str, str], Comparison]] = []
    rows = []
    for item in found:
        by_pair: dict[tuple[str, str], list[str]] = {}
        for pair in item.comparisons:
            points = 100 * pair.difference
            key = {"model": item.model, "seed": str(item.seed), "first": pair.first}
            key |= {"second": pair.second, "metric": pair.metric}
            key |= {"p_value": f"{pair.p_value:.4g}", "p_holm": f"{pair.p_holm:.4g}"}
            comparisons.append((key, compare(points, None, obstacles=obstacles)))
            texts = by_pair.setdefault((pair.first, pair.second), [])
            texts += [rounded(points, 2), f"{pair.p_holm:.4f}"]
        base, *training = item.model.split("+")
        label = labels[base]
        if training:
            label += f" ({training[0].replace('_', ' + ')}, {training[1]} loss, seed {item.seed})"
        rows += [
            {
                "model": label,
                "first": first.replace("_", " + "),
                "second": second.replace("_", " + "),
                "texts": texts,
            }
            for (first, second), texts in by_pair.items()
        ]
    write_comparisons(csv, comparisons, decimals=2)
    render_table(
        template,
        tex,
        rows=rows,
        metrics=list(METRICS.values()),
        permutations=max(item.permutations for item in found),
        note="" if released else SAMPLE_NOTE,
    )
