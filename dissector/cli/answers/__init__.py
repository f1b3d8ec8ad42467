"""Commands that answer one question about a whole capture."""
