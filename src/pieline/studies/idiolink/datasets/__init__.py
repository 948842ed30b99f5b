"""Data sets of IdioLink."""
