"""What stands above the studies: claims, comparison, page, document, provenance."""
