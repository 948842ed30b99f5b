"""Agreement of the automatic validation with human reviewers (section 3.2.4)."""

from collections import Counter
from collections.abc import Mapping

from pieline.core.records import Record


class Agreement(Record):
    """Agreement of the automatic validation with human reviewers, as a binary task (section 3.2.4).

    Attributes:
        texts: Number of texts judged by both the model and reviewers.
        invalid: Number of texts that reviewers judged invalid.
        valid_judged_invalid, invalid_judged_valid: Number of errors of the model on texts that
            reviewers judged valid and invalid; undecided texts count as judged invalid.
        accuracy: Share of texts with equal judgments.
        macro_f1: Mean of the F1 scores of both classes.
        valid_f1, invalid_f1: F1 score of each class; 0 if undefined.
        missed: `invalid_judged_valid` as a share of all texts.
    """

    texts: int
    invalid: int
    valid_judged_invalid: int
    invalid_judged_valid: int
    accuracy: float
    macro_f1: float
    valid_f1: float
    invalid_f1: float
    missed: float


def agreement(flagged: Mapping[str, bool], judged_invalid: Mapping[str, bool]) -> Agreement | None:
    """Return the agreement of model and reviewers on texts that both judged; None without any.

    Args:
        flagged: Whether the votes resulted in a label other than `valid`, by text id.
        judged_invalid: Whether a reviewer judged the text invalid, by text id.
    """
    from sklearn.metrics import accuracy_score, f1_score

    names = sorted(flagged.keys() & judged_invalid.keys())
    if not names:
        return None
    people = [not judged_invalid[name] for name in names]
    model = [not flagged[name] for name in names]
    cells = Counter(zip(people, model, strict=True))

    def f1(valid: bool) -> float:
        return float(f1_score(people, model, pos_label=valid, zero_division=0.0))

    return Agreement(
        texts=len(names),
        invalid=people.count(False),
        valid_judged_invalid=cells[True, False],
        invalid_judged_valid=cells[False, True],
        accuracy=float(accuracy_score(people, model)),
        macro_f1=(f1(True) + f1(False)) / 2,
        valid_f1=f1(True),
        invalid_f1=f1(False),
        missed=cells[False, True] / len(names),
    )
