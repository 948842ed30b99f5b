"""The items of IdioLink: how every run ranks for every query."""

import csv
from collections.abc import Iterator
from io import StringIO
from typing import Self

from pieline.core.files import read_text
from pieline.reporting.given import Given
from pieline.reporting.items import Item, runs
from pieline.studies.idiolink.records import QueryUsage, query_scores_file


class IdiolinkItem(Item):
    """How a run ranks for a query.

    Attributes:
        query: id of the query.
        subject: its domain.
        composition: which documents the index holds.
        r_precision, ndcg_at_10: fractions of 1; null where unknown (see `RankingScores`).
        first_relevant: rank, from 1, of the first document with the query's meaning; null where
            the run keeps none.
    """

    query: str
    pie: str
    usage: QueryUsage
    subject: str
    composition: str
    query_mode: str
    r_precision: float | None
    ndcg_at_10: float | None
    first_relevant: int | None

    @classmethod
    def of(cls, given: Given) -> Iterator[Self]:
        """The rows of all runs, queries in the order of the dataset."""
        # A metric that somebody added has a column there, and here once it has a field.
        fields = cls.model_fields.keys()
        for metric, shared in runs(given):
            for row in csv.DictReader(StringIO(read_text(query_scores_file(metric.path)))):
                known = {name: row[name] or None for name in row if name in fields}
                yield cls.model_validate(known | shared | {"language": "english"})
