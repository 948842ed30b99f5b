"""What the matching of PIEs needs to know of each language."""
