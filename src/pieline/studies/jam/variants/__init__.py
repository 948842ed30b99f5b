"""Hard variants of ID10M-JAM."""
