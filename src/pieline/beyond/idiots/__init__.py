"""Compare prompts on IdioTS by sensitivity and criterion, beyond the paper."""
