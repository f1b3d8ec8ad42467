"""Events, their evidence, and their order."""
