"""Reports on all studies of a run: claims, comparison, page, document and provenance."""
