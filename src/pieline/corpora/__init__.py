"""Readers of the upstream formats, strict: an error names the file and the record."""
