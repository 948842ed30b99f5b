"""The rehearsal: stand-ins that give the printed numbers back, and what the real run will take."""
