"""Variants of IdioLink."""
