"""Archives of runs: predictions made on one machine (with a GPU or API key), scored on another."""
