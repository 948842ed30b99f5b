"""Archives of runs: predictions made once, where the GPU or the key is, and scored anywhere."""
