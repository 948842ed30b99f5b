"""Compare the user's own models with reference models and printed numbers, for the results page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pieline.reporting.numbers import COMPARED, Number
from pieline.results.numbers import measure_in_words, run_in_words, word
from pieline.results.run_results import RunResults, ShownStudy

_MOST_REFERENCES = 3


@dataclass(frozen=True)
class RowScore:
    """Our score or a printed score, with the label of the model, setting and seed."""

    label: str
    value: float
    number: Number

    @property
    def metrics(self) -> str:
        """Metric file of the score; empty if the score has no metric file or several ones."""
        return self.number.files[0] if len(self.number.files) == 1 else ""


@dataclass(frozen=True)
class OwnScore:
    """A score of one of the user's own models, with its rank.

    Attributes:
        score: The score.
        rank: Rank of the score among the compared scores; 0 if there are no other scores, or if
            neither high nor low scores are better.
        of: Count of the compared scores, including this score.
        differences: Scores of reference models, and the difference of this score to each of them.
    """

    score: RowScore
    rank: int
    of: int
    differences: tuple[tuple[RowScore, float], ...]


@dataclass(frozen=True)
class OwnMeasure:
    """Scores of the user's own models by one measure, on the same data and in one query mode.

    Attributes:
        what: Query mode, language and measure in words.
        is_ranked_among_printed: Whether the scores are ranked among printed scores; otherwise, they
            are ranked among the scores of this run.
        scores: Scores of the user's own models.
        run: Scores of the run's other models, best first.
        printed: Printed scores, best first; empty if none can be compared with this run.
    """

    what: str
    is_ranked_among_printed: bool
    scores: tuple[OwnScore, ...]
    run: tuple[RowScore, ...]
    printed: tuple[RowScore, ...]

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest of all scores."""
        own_scores = [own.score for own in self.scores]
        values = [score.value for score in (*own_scores, *self.run, *self.printed)]
        return min(values), max(values)

    def place(self, score: RowScore) -> float:
        """Return the position of a score on the axis of a plot, from 0 (lowest score) to 100."""
        low, high = self.range
        return 50.0 if low == high else round(100 * (score.value - low) / (high - low), 1)


def own_measures(
    study: ShownStudy, results: RunResults, numbers: Sequence[Number]
) -> list[OwnMeasure]:
    """Return the scores of the user's own models in a study, for each main measure."""
    numbers_by_column: dict[tuple[str, ...], list[Number]] = {}
    for number in numbers:
        if number.study == study.name and not number.train_mode:
            numbers_by_column.setdefault(_column(number), []).append(number)
    measures = []
    for column in numbers_by_column.values():
        own = [
            number
            for number in column
            if number.model in results.others and number.ours is not None
        ]
        is_in_main_table = any(set(study.main_tables) & set(number.tables) for number in own)
        if is_in_main_table and own[0].measure in study.main_measures:
            measures.append(_own_measure(own, column, study.reference_models, results.labels))
    return measures


def _column(number: Number) -> tuple[str, ...]:
    """Return the keys that must be equal for numbers to be compared; their prompts may differ."""
    return (number.language, number.query_mode, number.composition, number.scope, number.measure)


def _own_measure(
    own: Sequence[Number],
    column: Sequence[Number],
    reference_models: Sequence[str],
    labels: Mapping[str, str],
) -> OwnMeasure:
    """Compare the scores of the user's own models with the other scores of a column.

    Args:
        own: Numbers of the user's own models.
        column: All numbers that can be compared with these numbers.
        reference_models: Names of the models to compare with, most important first.
        labels: Labels of models by name.
    """
    own_models = {number.model for number in own}
    others = [number for number in column if number.model not in own_models]
    own_scores = _scores(own, labels)
    run_scores = _scores(others, labels)
    printed_scores: list[RowScore] = []
    # If no score of this run was compared with a printed score, the data may differ.
    if any(number.verdict in COMPARED for number in others):
        printed_scores = _scores(others, labels, of_paper=True)
    sign = 1 if own[0].better == "low" else -1

    def sort_key(score: RowScore) -> float:
        """Return a key that sorts better scores first."""
        return sign * score.value

    run_scores.sort(key=sort_key)
    printed_scores.sort(key=sort_key)
    references = _choose_references(run_scores, printed_scores, reference_models)
    if printed_scores:
        compared_scores = printed_scores
        count = len(printed_scores) + 1
    else:
        compared_scores = [*run_scores, *own_scores]
        count = len(compared_scores)
    has_rank = bool(own[0].better) and count > 1
    ranked_scores = []
    for score in own_scores:
        better_scores = [other for other in compared_scores if sort_key(other) < sort_key(score)]
        rank = len(better_scores) + 1 if has_rank else 0
        differences = tuple((reference, score.value - reference.value) for reference in references)
        ranked_scores.append(OwnScore(score, rank, count, differences))
    any_run = replace(own[0], setting="", seed="")
    return OwnMeasure(
        what=", ".join(filter(None, (run_in_words(any_run), measure_in_words(own[0])))),
        is_ranked_among_printed=bool(printed_scores),
        scores=tuple(ranked_scores),
        run=tuple(run_scores),
        printed=tuple(printed_scores),
    )


def _choose_references(
    run_scores: Sequence[RowScore],
    printed_scores: Sequence[RowScore],
    reference_models: Sequence[str],
) -> list[RowScore]:
    """Return the scores with which own models are compared: reference models first.

    At most `_MOST_REFERENCES` scores of the run are followed by the best printed score.

    Args:
        run_scores: Scores of the run's models, best first.
        printed_scores: Printed scores, best first.
        reference_models: Names of the reference models, most important first.
    """

    def place(score: RowScore) -> int:
        """Return the place of a score's model in `reference_models`; other models come last."""
        if score.number.model in reference_models:
            return reference_models.index(score.number.model)
        return len(reference_models)

    references = sorted(run_scores, key=place)[:_MOST_REFERENCES]
    if printed_scores:
        best = printed_scores[0]
        references.append(replace(best, label=f"best printed ({best.label})"))
    return references


def _scores(
    numbers: Sequence[Number], labels: Mapping[str, str], *, of_paper: bool = False
) -> list[RowScore]:
    """Return the scores of numbers; a mean over seeds replaces the scores of single seeds.

    Args:
        numbers: The numbers.
        labels: Labels of models by name.
        of_paper: Whether to return the printed scores instead of ours.
    """
    runs_with_mean = {(number.model, number.setting) for number in numbers if not number.seed}
    scores = []
    for number in numbers:
        value = number.printed if of_paper else number.ours
        is_in_mean = bool(number.seed) and (number.model, number.setting) in runs_with_mean
        if value is None or is_in_mean:
            continue
        seed = f"seed {number.seed}" if number.seed else ""
        phrases = (labels.get(number.model, number.model), word(number.setting), seed)
        scores.append(RowScore(", ".join(filter(None, phrases)), value, number))
    return scores
