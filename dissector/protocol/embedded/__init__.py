"""Content embedded in the bytes fields of messages and records."""
