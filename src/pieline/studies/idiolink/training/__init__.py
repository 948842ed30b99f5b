"""Training of IdioLink."""
