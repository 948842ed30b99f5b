"""The automatic validation beside people (section 3.2.4)."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict
from sklearn.metrics import accuracy_score, f1_score


class Agreement(BaseModel):
    """The automatic validation beside people, as a binary task (3.2.4).

    Attributes:
        texts: judged by both.
        invalid: texts that people found invalid.
        valid_judged_invalid, invalid_judged_valid: disagreements; a text that the votes leave
            undecided is flagged, so it counts as judged invalid.
        accuracy: share of agreement.
        macro_f1: mean of the F1 scores of both classes.
        valid_f1, invalid_f1: F1 score of each class; null where it is not defined.
        missed: `invalid_judged_valid` as a share of all texts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    texts: int
    invalid: int
    valid_judged_invalid: int
    invalid_judged_valid: int
    accuracy: float
    macro_f1: float
    valid_f1: float
    invalid_f1: float
    missed: float


def agreement(flagged: Mapping[str, bool], found_invalid: Mapping[str, bool]) -> Agreement | None:
    """Compare the automatic validation with people on the texts that both judged.

    Args:
        flagged: by text id, whether the automatic validation did not judge it valid.
        found_invalid: by text id, whether people found it invalid.

    Returns:
        null where no text was judged by both.
    """
    names = sorted(flagged.keys() & found_invalid.keys())
    if not names:
        return None
    people = [not found_invalid[name] for name in names]
    model = [not flagged[name] for name in names]
    missed = sum(judged and not right for judged, right in zip(model, people, strict=True))

    def f1(valid: bool) -> float:
        return float(f1_score(people, model, pos_label=valid, zero_division=0.0))

    return Agreement(
        texts=len(names),
        invalid=people.count(False),
        valid_judged_invalid=sum(
            right and not judged for judged, right in zip(model, people, strict=True)
        ),
        invalid_judged_valid=missed,
        accuracy=float(accuracy_score(people, model)),
        macro_f1=(f1(True) + f1(False)) / 2,
        valid_f1=f1(True),
        invalid_f1=f1(False),
        missed=missed / len(names),
    )
