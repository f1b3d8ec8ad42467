"""Bodies as JSON."""
