"""What hides in the bytes fields of messages and records."""
