"""IdioTS."""
