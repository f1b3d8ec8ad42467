"""Fields and values that hold secrets."""
