"""Stand-ins for weights: tiny checkpoints with the anatomy of the public ones, and their server."""
