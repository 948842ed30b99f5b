"""Choose few-shot examples from ID10M's train split (ID10M-JAM, section 4.2)."""

import random
from collections.abc import Sequence

from pieline.core.errors import UserError
from pieline.studies.jam.raw.id10m import TaggedSentence


def choose_examples(
    sentences: Sequence[TaggedSentence], count: int, *, seed: int
) -> list[TaggedSentence]:
    """Choose `count` examples with an idiom and as many without, in random order (section 4.2).

    The method is that of the released code, which calls pandas' `sample` for each kind with the
    run's seed; on ID10M's train split, it selects the paper's examples.

    Raises:
        UserError: There are too few sentences with or without an idiom.
    """
    chosen: list[TaggedSentence] = []
    for has_idiom in (True, False):
        group = [item for item in sentences if bool(item.spans) == has_idiom]
        if len(group) < count:
            kind = "with" if has_idiom else "without"
            raise UserError(
                f"only {len(group)} sentences {kind} an idiom ({count} examples requested)",
                where="train split",
                hint="reduce the number of examples",
            )
        chosen += _sample(group, count, seed)
    random.Random(seed).shuffle(chosen)  # noqa: S311 - not for secrets
    return chosen


def _sample(group: Sequence[TaggedSentence], count: int, seed: int) -> list[TaggedSentence]:
    """Replicate `DataFrame.sample(count, random_state=seed)`."""
    import numpy as np

    draw = np.random.RandomState(seed)  # used by pandas; its sequence never changes
    return [group[number] for number in draw.choice(len(group), count, replace=False)]
