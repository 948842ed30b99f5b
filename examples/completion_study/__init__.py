"""Can language models complete idioms? An example of a study."""
