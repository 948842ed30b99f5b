"""The results page: one file that shows a run and the way from each number to its sentences."""
