"""Filtered originals of IdioLink."""
