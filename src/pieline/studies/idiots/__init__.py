"""The IdioTS study."""
