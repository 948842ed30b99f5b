"""Language-specific data for matching PIEs and reading model answers."""
