"""Raw files of IdioLink."""
