"""Generated texts of IdioLink."""
