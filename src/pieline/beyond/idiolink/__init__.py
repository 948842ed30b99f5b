"""Analyze word overlap as a lexical shortcut on IdioLink, which the paper does not do."""
