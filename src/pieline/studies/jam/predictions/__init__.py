"""Predictions of ID10M-JAM."""
