"""Tables of IdioLink."""
