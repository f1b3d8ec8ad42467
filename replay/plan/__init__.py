"""From a capture to an ordered list of steps with their dependencies."""
