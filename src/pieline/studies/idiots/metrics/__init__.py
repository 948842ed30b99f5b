"""Metrics of IdioTS."""
