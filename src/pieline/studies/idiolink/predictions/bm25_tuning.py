"""What tuning BM25 leaves: the whole grid and the chosen point (IdioLink, appendix E.1)."""

from pieline.core.records import Record


class Bm25Parameters(Record):
    """A point of the grid."""

    k1: float
    b: float


class GridPoint(Bm25Parameters):
    """A point and its nDCG@10 on the validation split (fraction)."""

    ndcg_at_10: float


class Tuning(Record):
    """The whole grid and the chosen point, and the queries and the index that they are of.

    The grid is empty where there was nothing to tune on.
    """

    query_mode: str
    composition: str
    chosen: Bm25Parameters
    grid: list[GridPoint]
