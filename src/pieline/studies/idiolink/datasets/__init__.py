"""Datasets of IdioLink."""
