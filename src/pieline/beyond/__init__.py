"""Analyses that the papers do not have, by study (docs/beyond.md).

They read the studies' runs, predictions and metrics; the studies import nothing from this package.
"""
