"""pieline: three papers on potentially idiomatic expressions, from raw corpora to every table."""

__version__ = "0.1.0"
