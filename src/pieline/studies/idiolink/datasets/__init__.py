"""Reading, assembly and checks of IdioLink's datasets."""
