"""Training tuples for contrastive fine-tuning (IdioLink, section 4.3)."""

import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from pieline.core.errors import UserError
from pieline.core.files import read_text
from pieline.core.records import Record, explain
from pieline.core.texts import text_key
from pieline.studies.idiolink.datasets.dataset import RELEVANT_USAGES
from pieline.studies.idiolink.records import HARD_NEGATIVES, SOFT_NEGATIVES, Document, Query


class TrainingTuple(Record):
    """A training example for one query; all fields are text ids.

    Attributes:
        query: The query.
        positive: A document with the query's PIE and meaning.
        hard: Documents with the query's PIE and the opposite meaning.
        soft: Documents with other PIEs and any usage.
    """

    query: str
    positive: str
    hard: tuple[str, ...] = Field(strict=False)
    soft: tuple[str, ...] = Field(strict=False)


class _ReleasedTuple(Record):
    """A line of the released file of mined tuples, with texts instead of ids."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    query: str
    positive: str
    negatives: list[str]


def sample_tuples(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    seed: int,
    hard: int = HARD_NEGATIVES,
    soft: int = SOFT_NEGATIVES,
) -> list[TrainingTuple]:
    """Sample one tuple per query, in query order; documents are drawn without replacement.

    Each query has its own generator, so its tuple does not depend on the other queries.

    Raises:
        UserError: The documents are too few for the positive or the negatives of a query.
    """
    ids = [document.id for document in documents]
    result = []
    for query in queries:
        same_meaning, opposite, others = [], [], []
        for name, document in zip(ids, documents, strict=True):
            if document.pie != query.pie:
                others.append(name)
            elif document.usage in RELEVANT_USAGES[query.usage]:
                same_meaning.append(name)
            else:
                opposite.append(name)
        generator = random.Random(f"{seed}/{query.id}")  # noqa: S311 - not security-related
        samples = []
        for kind, names, count in (
            ("documents of the same meaning", same_meaning, 1),
            ("documents of the opposite meaning", opposite, hard),
            ("documents of other PIEs", others, soft),
        ):
            if len(names) < count:
                raise UserError(
                    f"only {len(names)} {kind}, {count} needed",
                    where=query.id,
                    hint="train on a split with more documents",
                )
            samples.append(generator.sample(names, count))
        (positive,), hard_ids, soft_ids = samples
        negatives = {"hard": tuple(hard_ids), "soft": tuple(soft_ids)}
        result.append(TrainingTuple(query=query.id, positive=positive, **negatives))
    return result


def read_released_tuples(
    path: str | Path,
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    hard: int = HARD_NEGATIVES,
    soft: int = SOFT_NEGATIVES,
) -> list[TrainingTuple]:
    """Read the tuples that the authors mined, with the first `hard` and `soft` negatives of each.

    Raises:
        UserError: A line is invalid, contains a text that is not in the split, or does not have
            one positive, two hard negatives and three soft negatives, in this order.
    """
    by_query = {text_key(query.sentence): query for query in queries}
    by_document = {text_key(document.sentence): document for document in documents}
    other_file = "use the file of this split"
    result = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        where = f"{path}:{number}"
        try:
            row = _ReleasedTuple.model_validate_json(line)
            query, positive = by_query[text_key(row.query)], by_document[text_key(row.positive)]
            negatives = [by_document[text_key(text)] for text in row.negatives]
        except ValidationError as error:
            raise UserError(explain(error), where=where, hint="fetch the file again") from None
        except KeyError as error:
            texts = (row.query, row.positive, *row.negatives)
            text = next(text for text in texts if text_key(text) == error.args[0])
            problem = f"text {text[:40]!r} is not in the split"
            raise UserError(problem, where=where, hint=other_file) from None
        opposite, others = negatives[:HARD_NEGATIVES], negatives[HARD_NEGATIVES:]
        if not _is_expected(query, positive, opposite, others):
            raise UserError(
                "expected one positive, two hard and three soft negatives, in this order",
                where=where,
                hint=other_file,
            )
        result.append(
            TrainingTuple(
                query=query.id,
                positive=positive.id,
                hard=tuple(text.id for text in opposite[:hard]),
                soft=tuple(text.id for text in others[:soft]),
            )
        )
    return result


def _is_expected(
    query: Query, positive: Document, opposite: Sequence[Document], others: Sequence[Document]
) -> bool:
    """Return whether the documents of a tuple have the right PIEs, meanings and number."""
    same_meaning = RELEVANT_USAGES[query.usage]
    if positive.pie != query.pie or positive.usage not in same_meaning:
        return False
    if any(text.pie != query.pie or text.usage in same_meaning for text in opposite):
        return False
    return len(others) == SOFT_NEGATIVES and all(text.pie != query.pie for text in others)
