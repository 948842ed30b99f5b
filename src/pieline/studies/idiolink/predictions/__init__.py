"""Embeddings and rankings of IdioLink's texts."""
