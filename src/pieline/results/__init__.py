"""Reports that span all studies: claims, comparison, page, document and provenance."""
