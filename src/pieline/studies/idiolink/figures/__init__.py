"""Figures of IdioLink."""
