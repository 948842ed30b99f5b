"""Selection of the PIEs of IdioLink."""
