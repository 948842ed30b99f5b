"""Verification of archives: integrity checks and recomputation of samples."""
