"""Encoders that tag idioms token by token (ID10M-JAM, section 4.3 and appendix D)."""
