"""The user's own models beside the reference rows and the printed numbers, for the results page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pieline.reporting.numbers import COMPARED, Number
from pieline.results.numbers import measure_in_words, run_in_words, word
from pieline.results.run_results import RunResults, ShownStudy

_MOST_REFERENCES = 3


@dataclass(frozen=True)
class RowScore:
    """A score of ours or a printed one, with the label of its model and setting."""

    label: str
    value: float
    number: Number

    @property
    def metrics(self) -> str:
        """Metric file of the score; empty if there is not exactly one."""
        return self.number.files[0] if len(self.number.files) == 1 else ""


@dataclass(frozen=True)
class OwnScore:
    """A score of an own model.

    Attributes:
        score: The score.
        rank, of: Rank among the compared scores, and their number including this one. The rank is 0
            if there are no other scores, or if neither high nor low scores are better.
        differences: Scores of reference rows, each with the difference (own minus reference).
    """

    score: RowScore
    rank: int
    of: int
    differences: tuple[tuple[RowScore, float], ...]


@dataclass(frozen=True)
class OwnMeasure:
    """Scores of the own models by one measure, on the same data and in the same query mode.

    Attributes:
        what: Query mode, language and measure in words.
        is_ranked_among_printed: Whether ranks are among printed scores, or else among this run's.
        scores: Scores of the own models.
        run: Scores of the run's other models, best first.
        printed: Printed scores, best first; empty if none is comparable with this run.
    """

    what: str
    is_ranked_among_printed: bool
    scores: tuple[OwnScore, ...]
    run: tuple[RowScore, ...]
    printed: tuple[RowScore, ...]

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest score."""
        own = [each.score for each in self.scores]
        values = [each.value for each in (*own, *self.run, *self.printed)]
        return min(values), max(values)

    def place(self, score: RowScore) -> float:
        """Return the place of a score on the axis of a plot, from 0 to 100."""
        low, high = self.range
        return 50.0 if low == high else round(100 * (score.value - low) / (high - low), 1)


def own_measures(
    study: ShownStudy, results: RunResults, numbers: Sequence[Number]
) -> list[OwnMeasure]:
    """Return the main measures by which the run scored own models."""
    columns: dict[tuple[str, ...], list[Number]] = {}
    for number in numbers:
        if number.study == study.name and not number.train_mode:
            columns.setdefault(_column(number), []).append(number)
    found = []
    for column in columns.values():
        own = [each for each in column if each.model in results.others and each.ours is not None]
        is_main = any({*study.main_tables} & {*each.tables} for each in own)
        if is_main and own[0].measure in study.main_measures:
            found.append(_measure(own, column, study.reference_models, results.labels))
    return found


def _column(number: Number) -> tuple[str, ...]:
    """Return the key that comparable scores share; their prompts may differ."""
    return (number.language, number.query_mode, number.composition, number.scope, number.measure)


def _measure(
    own: Sequence[Number],
    column: Sequence[Number],
    first: Sequence[str],
    labels: Mapping[str, str],
) -> OwnMeasure:
    scores = _scores(own, labels)
    own_models = {each.model for each in own}
    others = [each for each in column if each.model not in own_models]
    run = _scores(others, labels)
    # Without a comparable score of this run, nothing shows that the printed ones are comparable.
    is_comparable = any(each.verdict in COMPARED for each in others)
    printed = _scores(others, labels, of_paper=True) if is_comparable else []
    sign = 1 if own[0].better == "low" else -1
    run.sort(key=lambda each: sign * each.value)
    printed.sort(key=lambda each: sign * each.value)
    # Reference models come first, in their order; sorting keeps the order of the others.
    references = sorted(run, key=lambda each: [*first, each.number.model].index(each.number.model))
    references = references[:_MOST_REFERENCES]
    if printed:
        references.append(replace(printed[0], label=f"best printed ({printed[0].label})"))
    ranked = [sign * each.value for each in printed or [*run, *scores]]
    of = len(printed) + 1 if printed else len(ranked)
    has_rank = bool(own[0].better) and of > 1
    own_scores = []
    for score in scores:
        rank = 1 + sum(value < sign * score.value for value in ranked) if has_rank else 0
        differences = tuple((each, score.value - each.value) for each in references)
        own_scores.append(OwnScore(score, rank, of, differences))
    run_of = replace(own[0], setting="", seed="")
    return OwnMeasure(
        what=", ".join(filter(None, (run_in_words(run_of), measure_in_words(own[0])))),
        is_ranked_among_printed=bool(printed),
        scores=tuple(own_scores),
        run=tuple(run),
        printed=tuple(printed),
    )


def _scores(
    numbers: Sequence[Number], labels: Mapping[str, str], *, of_paper: bool = False
) -> list[RowScore]:
    """Return our scores or the printed ones, without single seeds if there is their mean."""
    averaged = {(each.model, each.setting) for each in numbers if not each.seed}
    scores = []
    for number in numbers:
        value = number.printed if of_paper else number.ours
        if value is not None and not (number.seed and (number.model, number.setting) in averaged):
            parts = (labels.get(number.model, number.model), word(number.setting))
            seed = f"seed {number.seed}" if number.seed else ""
            scores.append(RowScore(", ".join(filter(None, (*parts, seed))), value, number))
    return scores
