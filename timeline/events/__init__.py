"""Events, what they rest on, and their order."""
