"""Generation of the results page."""
