"""What everything else rests on: errors, files, records, YAML."""
