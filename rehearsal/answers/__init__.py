"""Answers of the stand-ins that reproduce the printed numbers of ID10M-JAM and IdioTS."""
