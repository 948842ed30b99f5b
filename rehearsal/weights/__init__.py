"""Tiny checkpoints with the structure of the public ones, and a stand-in for vLLM."""
