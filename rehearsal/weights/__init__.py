"""Stand-ins for weights: tiny checkpoints structured like the public ones, and a server."""
