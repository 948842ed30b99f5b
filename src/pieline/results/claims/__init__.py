"""Claims of the papers, and their judgement on printed numbers and on ours."""
