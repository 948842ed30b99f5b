"""Common utilities: errors, files, records and YAML."""
