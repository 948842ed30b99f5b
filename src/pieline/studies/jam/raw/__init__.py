"""Raw files of ID10M-JAM."""
