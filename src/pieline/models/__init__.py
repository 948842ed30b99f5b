"""What each model is: the registry, and one module a kind."""
