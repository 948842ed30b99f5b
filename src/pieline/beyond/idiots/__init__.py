"""Beyond IdioTS: sensitivity and criterion of prompts."""
