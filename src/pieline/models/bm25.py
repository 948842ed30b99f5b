"""Entries of kind bm25."""

from typing import Literal

from pieline.models.entry import ModelEntry


class Bm25Entry(ModelEntry):
    """BM25 by rank-bm25 (IdioLink, appendix E)."""

    kind: Literal["bm25"]
