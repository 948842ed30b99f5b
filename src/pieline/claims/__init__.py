"""The papers' claims, each judged on the printed numbers and on ours."""
