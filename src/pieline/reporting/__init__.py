"""Tables and figures of all studies: printed numbers, comparison and rendering."""
