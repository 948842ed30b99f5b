"""IdioTS: the sentences, and whether chat models detect their idioms for the right reason."""
