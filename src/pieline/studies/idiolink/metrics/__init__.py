"""Metrics of IdioLink."""
