"""Consumer groups and streams groups."""
