"""What the stand-ins answer, so that the printed numbers of ID10M-JAM and IdioTS come back."""
