"""The ID10M-JAM study."""
