"""Rankings and embeddings of IdioLink."""
