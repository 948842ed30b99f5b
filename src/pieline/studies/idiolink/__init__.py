"""The IdioLink study."""
