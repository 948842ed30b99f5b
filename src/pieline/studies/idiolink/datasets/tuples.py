"""Training tuples for contrastive fine-tuning (IdioLink, section 4.3)."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

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


class _MinedTuple(Record):
    """A line of the authors' file of mined tuples, which contains sentences instead of ids."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    query: str
    positive: str
    negatives: list[str]


QueryOrDocument = TypeVar("QueryOrDocument", Query, Document)
_OTHER_FILE = "use the file of this split"


def sample_tuples(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    seed: int,
    hard: int = HARD_NEGATIVES,
    soft: int = SOFT_NEGATIVES,
) -> list[TrainingTuple]:
    """Sample one tuple per query, in the order of the queries.

    The documents of a tuple are drawn without replacement. A query's tuple does not depend on
    other queries, because each query has a random generator of its own.

    Args:
        queries: Queries of the split.
        documents: Documents of the split.
        seed: Seed of the random generators.
        hard: Number of hard negatives per tuple.
        soft: Number of soft negatives per tuple.

    Raises:
        UserError: The documents are too few for the positive or the negatives of a query.
    """
    tuples = []
    for query in queries:
        same_meaning_ids: list[str] = []
        opposite_ids: list[str] = []
        other_pie_ids: list[str] = []
        for document in documents:
            if document.pie != query.pie:
                other_pie_ids.append(document.id)
            elif document.usage in RELEVANT_USAGES[query.usage]:
                same_meaning_ids.append(document.id)
            else:
                opposite_ids.append(document.id)
        _check_number(same_meaning_ids, 1, "documents of the same meaning", query)
        _check_number(opposite_ids, hard, "documents of the opposite meaning", query)
        _check_number(other_pie_ids, soft, "documents of other PIEs", query)
        # The order of the draws is part of the result, because they share the generator.
        generator = random.Random(f"{seed}/{query.id}")  # noqa: S311 - not security-related
        positive = generator.sample(same_meaning_ids, 1)[0]
        hard_negatives = generator.sample(opposite_ids, hard)
        soft_negatives = generator.sample(other_pie_ids, soft)
        tuples.append(
            TrainingTuple(
                query=query.id,
                positive=positive,
                hard=tuple(hard_negatives),
                soft=tuple(soft_negatives),
            )
        )
    return tuples


def _check_number(document_ids: Sequence[str], needed: int, kind: str, query: Query) -> None:
    """Raise a `UserError` if there are fewer documents of a kind than a query needs."""
    if len(document_ids) < needed:
        raise UserError(
            f"only {len(document_ids)} {kind}, {needed} needed",
            where=query.id,
            hint="train on a split with more documents",
        )


def read_released_tuples(
    path: str | Path,
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    hard: int = HARD_NEGATIVES,
    soft: int = SOFT_NEGATIVES,
) -> list[TrainingTuple]:
    """Read the tuples that the authors mined.

    Args:
        path: Path of the authors' file: one JSON object per line.
        queries: Queries of the split.
        documents: Documents of the split.
        hard: Number of hard negatives to keep per tuple; the first ones are kept.
        soft: Number of soft negatives to keep per tuple; the first ones are kept.

    Raises:
        UserError: A line is invalid, contains a text that is not in the split, or does not have
            one positive, two hard negatives and three soft negatives, in this order.
    """
    query_by_key = {text_key(query.sentence): query for query in queries}
    document_by_key = {text_key(document.sentence): document for document in documents}
    tuples = []
    for line_number, line in enumerate(read_text(path).splitlines(), start=1):
        where = f"{path}:{line_number}"
        try:
            mined = _MinedTuple.model_validate_json(line)
        except ValidationError as error:
            raise UserError(explain(error), where=where, hint="fetch the file again") from None
        query = _find_text(mined.query, query_by_key, where)
        positive = _find_text(mined.positive, document_by_key, where)
        negatives = [_find_text(text, document_by_key, where) for text in mined.negatives]
        hard_negatives, soft_negatives = negatives[:HARD_NEGATIVES], negatives[HARD_NEGATIVES:]
        if not _is_valid_tuple(query, positive, hard_negatives, soft_negatives):
            raise UserError(
                "expected one positive, two hard and three soft negatives, in this order",
                where=where,
                hint=_OTHER_FILE,
            )
        tuples.append(
            TrainingTuple(
                query=query.id,
                positive=positive.id,
                hard=tuple(document.id for document in hard_negatives[:hard]),
                soft=tuple(document.id for document in soft_negatives[:soft]),
            )
        )
    return tuples


def _find_text(
    sentence: str, text_by_key: Mapping[str, QueryOrDocument], where: str
) -> QueryOrDocument:
    """Return the query or document with a sentence; raise a `UserError` if there is none."""
    text = text_by_key.get(text_key(sentence))
    if text is None:
        problem = f"text {sentence[:40]!r} is not in the split"
        raise UserError(problem, where=where, hint=_OTHER_FILE)
    return text


def _is_valid_tuple(
    query: Query,
    positive: Document,
    hard_negatives: Sequence[Document],
    soft_negatives: Sequence[Document],
) -> bool:
    """Return whether the documents of a tuple have the right PIEs, meanings and number."""
    same_meaning = RELEVANT_USAGES[query.usage]
    if positive.pie != query.pie or positive.usage not in same_meaning:
        return False
    for document in hard_negatives:
        if document.pie != query.pie or document.usage in same_meaning:
            return False
    if any(document.pie == query.pie for document in soft_negatives):
        return False
    # A file with too few hard negatives has too few soft negatives, too.
    return len(soft_negatives) == SOFT_NEGATIVES
