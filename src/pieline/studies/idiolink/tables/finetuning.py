"""IdioLink's fine-tuning results: Table 5, and what of it Figure 3 shows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pieline.core.records import load_records
from pieline.core.uncertainty import Spread, spread
from pieline.reporting.given import Given
from pieline.reporting.printed import compare, read_published
from pieline.reporting.seeds import Ranges, deviation_ranges, mean_ranges
from pieline.reporting.tables import Cell, Group, Number, Row, TableContent
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import (
    COLUMNS,
    MARKS,
    METRICS,
    UNKNOWN,
    best_of_columns,
    in_printed_order,
    is_best,
    mark_of,
    mode_heads,
    notes_on,
    obstacles_of,
    per_cent,
)
from pieline.studies.idiolink.training.settings import evaluated_modes

TRAIN_MODES = {
    "sentence": "w/o inst - sentence",
    "instruction_sentence": "w/ inst - sentence",
    "span": "w/o inst - span",
    "instruction_span": "w/ inst - span",
}
"""Training configurations in the order of Table 5."""
LOSSES = {"paper": "equation 2", "released": "released"}
"""What Table 5 and Figure 3 call a loss."""
PAPER_SEEDS = 3
PRINTED_DDOF = (1, 0)
"""What the printed deviations may have: the paper does not say, and the released summary has 0."""
_JUDGED = (
    "Within sampling range, which is not equal, is a mean in the 95 % t interval (Welch) for the"
    f" difference of two means, of our seeds and the paper's {PAPER_SEEDS} (from one seed of ours:"
    " in the prediction interval), and a deviation in the F interval for the ratio of two"
    " variances; the printed deviations are read with ddof 1 and with ddof 0, and one reading"
    " suffices."
)
_TUPLES = {
    "sampled": "Trained with tuples that were sampled as section 4.3 says, not with the released"
    " mined ones.",
    "released": "Trained with the released mined tuples; those of the sentence modes serve all"
    " training modes.",
}
_UNTRAINED_MODE = "idiolink.finetuning.train_modes does not name it"


class Tuned(NamedTuple):
    """A fine-tuned model: what it was made from and how."""

    model: str
    train_mode: str
    loss: str

    @classmethod
    def parse(cls, name: str) -> "Tuned":
        """The parts of model+training mode+loss."""
        return cls(*name.split("+"))

    def __str__(self) -> str:
        return "+".join(self)


def spread_over_seeds(
    metrics: Sequence[IdiolinkMetrics],
) -> dict[tuple[str, str, str], Spread]:
    """Mean and deviation (per cent) by model, query mode and metric; none of unknown scores."""
    values = defaultdict(list)
    for item in metrics:
        for metric in METRICS:
            value = per_cent(item, metric)
            if value is not None:
                values[item.model, item.query_mode, metric].append(value)
    return {key: spread(found) for key, found in values.items()}


def finetuned(given: Given) -> TableContent:
    """Table 5: both metrics (per cent) by training configuration, model and query mode.

    Rows are the trainings of this run, and what else the paper prints.
    """
    printed = read_published(given.files["published"], ["train_mode", "model", "query_mode"])
    metrics = load_records(given.metrics, IdiolinkMetrics)
    sources = defaultdict(list)
    for item, path in zip(metrics, given.metrics, strict=True):
        sources[item.model, item.query_mode].append((item, path))
    spreads = spread_over_seeds(metrics)
    trained = list(dict.fromkeys(Tuned.parse(item.model) for item in metrics))
    numbers = {
        tuned: {
            (metric, mode): found.mean
            for metric, mode in COLUMNS
            if (found := spreads.get((str(tuned), mode, metric)))
        }
        for tuned in trained
    }
    best = best_of_columns(numbers)

    def cell(tuned: Tuned, checkpoint: str, metric: str, mode: str, reason: str) -> Cell:
        if mode not in evaluated_modes(tuned.train_mode):
            return Cell()
        row = printed.get((tuned.train_mode, checkpoint, mode), {})
        key = {"train_mode": tuned.train_mode, "loss": tuned.loss, "model": tuned.model}
        key |= {"query_mode": mode}
        of_seeds = sources[str(tuned), mode]
        found = spreads.get((str(tuned), mode, metric))
        obstacles = [f"not run: {reason}"] if reason else []
        if of_seeds and not found:
            obstacles.append(UNKNOWN)
        obstacles += obstacles_of(*(item for item, _ in of_seeds))
        files = tuple(path for _, path in of_seeds)
        values = row.get(f"{metric}_pct"), row.get(f"{metric}_pct_std")
        ranges = _ranges(found, *values)
        mean = compare(
            found.mean if found else None, values[0], obstacles=obstacles, ranges=ranges[0]
        )
        if found and found.deviation is None:
            obstacles.append("one seed has no deviation")
        deviation = compare(
            found.deviation if found else None, values[1], obstacles=obstacles, ranges=ranges[1]
        )
        row_numbers = numbers.get(tuned, {})
        return Cell(
            Number(key | {"metric": metric}, mean, files),
            Number(key | {"metric": f"{metric}_pct_std"}, deviation, files),
            best=is_best(row_numbers.get((metric, mode)), best[metric, mode]),
            mark=mark_of(row_numbers, metric, mode),
        )

    def rows(train_mode: str) -> Iterator[Row]:
        models = (*given.models, *given.absent)
        for model in in_printed_order(models, (name for _, name, _ in printed)):
            checkpoint = model.published_as or ""
            of_model = [tuned for tuned in trained if tuned[:2] == (model.name, train_mode)]
            reason = ""
            if not of_model:
                if not any(name[:2] == (train_mode, checkpoint) for name in printed):
                    continue
                of_model = [Tuned(model.name, train_mode, "")]
                reason = given.not_run.get(model.name, _UNTRAINED_MODE)
            for tuned in of_model:
                yield Row(
                    (model.label, LOSSES.get(tuned.loss, "–"), model.parameters or "–"),
                    tuple(cell(tuned, checkpoint, *column, reason) for column in COLUMNS),
                    reason,
                )

    seeds = max(map(len, sources.values()), default=0)
    over = "1 seed" if seeds == 1 else f"{seeds} seeds (mean ± standard deviation, ddof 1)"
    tuples = {str(item.conditions.settings.get("tuples")) for item in metrics}
    groups = ((title, tuple(rows(mode))) for mode, title in TRAIN_MODES.items())
    return TableContent(
        heads=mode_heads("Train", "Model", "Loss", "Param"),
        groups=tuple(Group(members, title) for title, members in groups if members),
        caption=f"Fine-tuning results on IdioLink in per cent, over {over}, by loss: that of"
        " equation 2, or the released code's (InfoNCE over the positives of the batch, temperature"
        f" 0.05). The paper does not say which of them its numbers are of. {MARKS}",
        notes=(_JUDGED, *(_TUPLES[name] for name in _TUPLES if name in tuples), *notes_on(metrics)),
    )


def _ranges(
    ours: Spread | None, mean: float | None, deviation: float | None
) -> tuple[Ranges, Ranges]:
    """Sampling ranges of our mean and our deviation; none without both printed numbers."""
    if ours is None or mean is None or deviation is None:
        return {}, {}
    printed = Spread(mean=mean, deviation=deviation, seeds=PAPER_SEEDS)
    of_deviation = {}
    if ours.deviation is not None:
        of_deviation = deviation_ranges(ours.seeds, printed, ddof=PRINTED_DDOF)
    return mean_ranges(ours, printed, ddof=PRINTED_DDOF), of_deviation


def shown_loss(metrics: Sequence[IdiolinkMetrics]) -> str:
    """The loss of Figure 3: the released one if it was run, since equation 2 gives other numbers.

    Claims on Table 5 prefer it, too (published/tables.yaml).
    """
    losses = {Tuned.parse(item.model).loss for item in metrics}
    return "released" if "released" in losses else "paper"


def best_trainings(
    metrics: Sequence[IdiolinkMetrics],
) -> dict[tuple[str, str, str], tuple[str, Spread]]:
    """What Figure 3 shows of each model, query mode and metric: the better of the trainings.

    At inference by spans a model may have been trained on sentences or on spans; the higher mean
    is taken, as the paper does. Of several losses it is that of `shown_loss`.

    Returns:
        Training mode and result, by model, query mode and metric.
    """
    best: dict[tuple[str, str, str], tuple[str, Spread]] = {}
    loss = shown_loss(metrics)
    for (name, query_mode, metric), found in spread_over_seeds(metrics).items():
        tuned = Tuned.parse(name)
        if tuned.loss != loss:
            continue
        key = (tuned.model, query_mode, metric)
        if key not in best or found.mean > best[key][1].mean:
            best[key] = (tuned.train_mode, found)
    return best
