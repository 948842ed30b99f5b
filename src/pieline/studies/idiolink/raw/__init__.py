"""Readers of IdioLink's raw files."""
