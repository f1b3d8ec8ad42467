"""Client ids, errors, topics and topic ids of a window."""
