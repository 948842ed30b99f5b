"""IdioLink: constructing the data set, retrieving from it, and fine-tuning for that."""
