"""Live capture: a child process captures packets, which are read while it runs."""
