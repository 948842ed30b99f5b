"""pieline: reproduce three papers on potentially idiomatic expressions from the raw corpora."""
