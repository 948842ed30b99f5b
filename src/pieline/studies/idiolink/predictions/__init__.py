"""Predictions of IdioLink."""
