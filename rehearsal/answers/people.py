"""Human annotations that reproduce the printed numbers of the papers' studies."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pieline.core.tables import write_csv
from pieline.studies.idiots.verdicts import ErrorType, ReviewCase
from pieline.studies.jam.metrics.humans import COLUMNS, Label, LabeledVariant
from pieline.studies.jam.records import JamSentence, by_original
from rehearsal.answers.idiots import printed_counts
from rehearsal.answers.jam import sampled, shuffle_key
from rehearsal.answers.printed_runs import text_numbers

_SORTED = "Llama-2-7b-chat"
"""The model for which IdioTS reports the number of invented idioms."""


def printed_labels(sentences: Sequence[JamSentence], published: Path) -> list[LabeledVariant]:
    """Return two annotators' labels of one variant per original (ID10M-JAM, section 5.1).

    If the number of originals differs from the paper's, the proportions are kept as closely as
    whole numbers allow. Wrong labels are assigned to literal variants first.

    Args:
        sentences: Sentences of the dataset in one language.
        published: Folder of the printed numbers.
    """
    numbers = text_numbers(published)
    every = round(numbers["jam.human_variants"])
    first, second, alike = (
        round(every * numbers[f"jam.human_{name}"] / 100)
        for name in ("accuracy_first", "accuracy_second", "agreement")
    )
    # The annotators agree only on correct labels.
    sorts = {
        (False, False): every - first - second + alike,
        (False, True): second - alike,
        (True, False): first - alike,
        (True, True): alike,
    }
    listed = [sort for sort, number in sorts.items() for _ in range(number)]
    groups = [group for group in by_original(sentences).values() if len(group) > 1]
    groups.sort(key=lambda group: (group[0].is_figurative, shuffle_key(group[0].id)))
    return [
        LabeledVariant(
            variant_id=variant.id,
            first=_label(variant, right=first_is_right),
            second=_label(variant, right=True) if second_is_right else "ambiguous",
            origin="people",
        )
        for (_, variant, *_), (first_is_right, second_is_right) in zip(
            groups, sampled(listed, len(groups)), strict=True
        )
    ]


def save_labels(path: str | Path, labels: Iterable[LabeledVariant]) -> None:
    """Write labels in the CSV format of `read_labels`."""
    write_csv(path, COLUMNS, [label.model_dump(include={*COLUMNS}) for label in labels])


def printed_verdicts(cases: Sequence[ReviewCase], published: Path) -> list[ReviewCase]:
    """Return Llama 2's cases with verdicts equal to the automatic ones.

    The error type of the printed fraction of wrong idioms is `invented` (IdioTS, section 5.2.1);
    that of the others is `phrasal_verb`.

    Args:
        cases: Cases of Llama 2's run.
        published: Folder of the printed numbers.
    """
    counts = printed_counts(published)[_SORTED]
    invented = round(text_numbers(published)["idiots.invented_llama2"])
    others = counts.true_positives - counts.right_idiom - invented
    numbers: dict[ErrorType, int] = {"invented": invented, "phrasal_verb": others}
    types = [name for name, number in numbers.items() for _ in range(number)]
    wrong = [
        case.sentence_id
        for case in cases
        if (case.gold, case.automatic_verdict) == ("idiomatic", "no")
    ]
    type_of = dict(zip(wrong, sampled(types, len(wrong)), strict=True))
    return [
        case.model_copy(
            update={
                "verdict": case.automatic_verdict,
                "error_type": type_of.get(case.sentence_id, ""),
            }
        )
        for case in cases
    ]


def _label(variant: JamSentence, *, right: bool) -> Label:
    return "figurative" if variant.is_figurative == right else "literal"
