"""Readers of the raw files of ID10M-JAM."""
