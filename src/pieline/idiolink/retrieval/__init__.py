"""Retrieval over IdioLink: BM25, text-embedding models, ranking."""
