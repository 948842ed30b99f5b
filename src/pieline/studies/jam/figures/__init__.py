"""Figures of ID10M-JAM."""
