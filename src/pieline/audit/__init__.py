"""Checks of what others computed: archives of runs."""
