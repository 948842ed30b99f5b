"""Tables and figures from metric JSON; reads nothing else of a run."""
