"""Variants of ID10M-JAM."""
