"""Generation, validation and correction of IdioLink's texts."""
