"""Fine-tuning of IdioLink's embedders."""
