"""Tables of ID10M-JAM."""
