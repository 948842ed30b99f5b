"""Selection of IdioLink's PIEs, domains and splits."""
