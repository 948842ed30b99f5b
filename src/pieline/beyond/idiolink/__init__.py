"""Beyond IdioLink: word overlap as a lexical shortcut."""
