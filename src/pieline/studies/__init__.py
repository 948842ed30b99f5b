"""The studies, one package each; `catalogue` finds them."""
