"""Live capture: a child process captures packets, which are read as they come."""
