"""ID10M-JAM: originals, hard variants and their validation, and what models say of them."""
