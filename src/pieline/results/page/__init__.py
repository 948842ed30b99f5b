"""Results page."""
