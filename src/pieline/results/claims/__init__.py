"""The papers' claims and what decides about them."""
