"""Verification of archives."""
