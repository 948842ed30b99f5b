"""Compare prompts and training data on ID10M-JAM, beyond the paper."""
