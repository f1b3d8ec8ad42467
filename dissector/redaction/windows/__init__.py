"""The messages of a window replaced at once, by the places of their fields in columns."""
