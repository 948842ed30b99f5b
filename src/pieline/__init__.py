"""pieline: reproduce three papers on potentially idiomatic expressions from the raw corpora."""

__version__ = "0.1.0"
