"""IdioLink."""
