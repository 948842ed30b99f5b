"""Tables and figures of any study: printed numbers, and how results are shown."""
