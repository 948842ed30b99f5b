"""Fine-tuning of encoders for ID10M-JAM."""
