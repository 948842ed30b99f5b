"""Records of BM25's tuning results (IdioLink, appendix E.1)."""

from pieline.core.records import Record


class Bm25Parameters(Record):
    """Values of BM25's parameters."""

    k1: float
    b: float


class GridPoint(Bm25Parameters):
    """A grid point and its nDCG@10 on the validation split (fraction)."""

    ndcg_at_10: float


class Tuning(Record):
    """The tuning grid and the chosen point, for one query mode and index composition.

    The grid is empty without a validation split.
    """

    query_mode: str
    composition: str
    chosen: Bm25Parameters
    grid: list[GridPoint]
