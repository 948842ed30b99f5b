"""Training of ID10M-JAM."""
