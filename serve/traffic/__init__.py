"""The traffic of clients as a capture."""
