"""Entries of models.yaml: the registry, and one module per kind of model."""
