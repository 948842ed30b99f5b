"""Beyond ID10M-JAM: effects of prompts and of training data on negative drift."""
