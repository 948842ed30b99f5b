"""Metrics of ID10M-JAM."""
