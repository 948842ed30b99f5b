"""Claims of the papers, judged on the printed numbers and on ours."""
