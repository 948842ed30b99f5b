"""Fine-tuning results: Table 5, and the selection for Figure 3."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

from pieline.core.uncertainty import Spread
from pieline.reporting.columns import Source, over_seeds, records_of, row, sources
from pieline.reporting.displays import ConfiguredStudy, Table
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import read_published
from pieline.reporting.seeds import PrintedSeeds
from pieline.reporting.tables import Row, TableContent
from pieline.studies.idiolink import inputs as given
from pieline.studies.idiolink.metrics.scores import IdiolinkMetrics
from pieline.studies.idiolink.tables.zero_shot import (
    COLUMNS,
    METRICS,
    SCORES,
    notes_on,
    obstacles_of,
    ordered_models,
    score_pct,
    scores_table,
    with_arrows,
)
from pieline.studies.idiolink.training.settings import evaluated_modes

TRAIN_MODES = {
    "sentence": "w/o inst - sentence",
    "instruction_sentence": "w/ inst - sentence",
    "span": "w/o inst - span",
    "instruction_span": "w/ inst - span",
}
"""Labels of the training modes, in the order of Table 5."""
LOSSES = {"paper": "equation 2", "released": "released"}
"""Labels of the losses in Table 5 and Figure 3."""
PRINTED_SEEDS = PrintedSeeds(3, ddof=(1, 0))
"""Seeds of the paper, which does not state the ddof of deviations; the released summary uses 0."""
_JUDGED = (
    "A mean is within sampling range, but not equal, if it lies in the 95% t interval (Welch) for"
    f" the difference between our mean and the paper's of {PRINTED_SEEDS.number} seeds (with one"
    " seed of ours: in the prediction interval). A deviation is within sampling range if it lies in"
    " the F interval for the ratio of two variances; the printed deviations are tested with ddof 1"
    " and with ddof 0, and one of them is enough."
)
_TUPLES = {
    "sampled": "Trained with tuples that were sampled as described in section 4.3, not with the"
    " released mined ones.",
    "released": "Trained with the released mined tuples; those for the sentence modes are used in"
    " all training modes.",
}
_UNTRAINED_MODE = "idiolink.finetuning.train_modes does not name it"


class Tuned(NamedTuple):
    """Base model, training mode and loss of a fine-tuned model."""

    model: str
    train_mode: str
    loss: str

    @classmethod
    def parse(cls, name: str) -> "Tuned":
        """Parse a name of the form model+training mode+loss."""
        return cls(*name.split("+"))

    def __str__(self) -> str:
        return "+".join(self)


def finetuned(inputs: DisplayInputs) -> TableContent:
    """Build Table 5: both metrics (percent) by training mode, model and query mode.

    Rows are the fine-tuned models of this run, and models and training modes that are only in the
    paper unless `inputs.rows` is "run".
    """
    printed = read_published(inputs.files["published"], ["train_mode", "model", "query_mode"])
    runs = sources(inputs, IdiolinkMetrics, ["model", "query_mode"], obstacles_of)
    trained = list(dict.fromkeys(Tuned.parse(name) for name, _ in runs))
    own_modes = {tuned.train_mode for tuned in trained} or {*TRAIN_MODES}

    def source(
        tuned: Tuned, checkpoint: str, mode: str, reason: str
    ) -> Source[IdiolinkMetrics] | None:
        if mode not in evaluated_modes(tuned.train_mode):
            return None
        key = {"train_mode": tuned.train_mode, "loss": tuned.loss, "model": tuned.model}
        return replace(
            runs.get((str(tuned), mode)) or Source({}, not_run=reason),
            key=key | {"query_mode": mode},
            printed=printed.get((tuned.train_mode, checkpoint, mode), {}),
            seeds=PRINTED_SEEDS,
        )

    def rows(train_mode: str) -> Iterator[Row]:
        for model in ordered_models(inputs, (name for _, name, _ in printed)):
            checkpoint = model.published_as or ""
            of_model = [tuned for tuned in trained if tuned[:2] == (model.name, train_mode)]
            reason = ""
            if not of_model:
                in_paper = any(name[:2] == (train_mode, checkpoint) for name in printed)
                left_out = model.name in inputs.not_run and train_mode in own_modes
                if not (in_paper if inputs.rows == "paper" else left_out):
                    continue
                of_model = [Tuned(model.name, train_mode, "")]
                reason = inputs.not_run.get(model.name, _UNTRAINED_MODE)
            for tuned in of_model:
                labels = (model.label, LOSSES.get(tuned.loss, "–"), model.parameters or "–")
                scores = [
                    (SCORES[metric], source(tuned, checkpoint, mode, reason))
                    for metric, mode in COLUMNS
                ]
                yield with_arrows(row(labels, scores, reason=reason))

    metrics = records_of(runs)
    seeds = max((len(source.records) for source in runs.values()), default=0)
    over = "1 seed" if seeds == 1 else f"{seeds} seeds (mean ± standard deviation, ddof 1)"
    tuples = {str(item.conditions.settings.get("tuples")) for item in metrics}
    return scores_table(
        ("Train", "Model", "Loss", "Param"),
        {title: rows(mode) for mode, title in TRAIN_MODES.items()},
        f"Fine-tuning results on IdioLink in percent, over {over}, by loss: that of"
        " equation 2, or the released code's (InfoNCE over the positives of the batch, temperature"
        " 0.05). The paper does not state which loss it used for its numbers.",
        (_JUDGED, *(_TUPLES[name] for name in _TUPLES if name in tuples), *notes_on(metrics)),
    )


def _tuned(study: ConfiguredStudy) -> DisplayInputs | None:
    configured = study.settings.finetuning.models
    if not configured:
        return None
    metrics, models = given.tuned_metrics(study), given.tuned_bases(study)
    return given.with_paper(study, metrics, models, configured)


FINETUNED_TABLE = Table(
    "idiolink_finetuned",
    "Table 5",
    "Retrieval by fine-tuned models, in percent.",
    finetuned,
    _tuned,
    printed="idiolink_table5",
)


def shown_loss(metrics: Sequence[IdiolinkMetrics]) -> str:
    """Return the loss for Figure 3: `released` if any model used it, otherwise `paper`.

    Claims about Table 5 also prefer the released loss (published/tables.yaml).
    """
    losses = {Tuned.parse(item.model).loss for item in metrics}
    return "released" if "released" in losses else "paper"


def best_trainings(
    metrics: Sequence[IdiolinkMetrics],
) -> dict[tuple[str, str, str], tuple[str, Spread]]:
    """Return the better training mode by model, query mode and metric, for Figure 3.

    For span queries, models may have been trained on sentences or spans; as in the paper, the
    training mode with the higher mean is used. Only models trained with `shown_loss` count, if the
    scores of all their seeds are known.

    Returns:
        The training mode and its scores over seeds, by model, query mode and metric.
    """
    seeds = defaultdict(list)
    for item in metrics:
        seeds[Tuned.parse(item.model), item.query_mode].append(item)
    best: dict[tuple[str, str, str], tuple[str, Spread]] = {}
    loss = shown_loss(metrics)
    for ((tuned, query_mode), records), metric in product(seeds.items(), METRICS):
        scores = over_seeds(records, partial(score_pct, metric=metric))
        key = (tuned.model, query_mode, metric)
        if scores is None or tuned.loss != loss:
            continue
        if key not in best or scores.mean > best[key][1].mean:
            best[key] = (tuned.train_mode, scores)
    return best
