"""ID10M-JAM."""
