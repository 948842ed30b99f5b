"""The three papers, one package each."""
