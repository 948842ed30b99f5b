"""Datasets of ID10M-JAM."""
