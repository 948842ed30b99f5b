"""The papers' claims and how they are judged."""
