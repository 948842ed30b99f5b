"""What tuning BM25 leaves: the whole grid and the chosen point (IdioLink, appendix E.1)."""

from pydantic import BaseModel, ConfigDict


class Bm25Parameters(BaseModel):
    """A point of the grid."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    k1: float
    b: float


class GridPoint(Bm25Parameters):
    """A point and its nDCG@10 on the validation split (fraction)."""

    ndcg_at_10: float


class Tuning(BaseModel):
    """The whole grid and the chosen point."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chosen: Bm25Parameters
    grid: list[GridPoint]
