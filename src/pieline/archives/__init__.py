"""Archives of runs: predictions made on a machine with a GPU or API key and scored on another."""
