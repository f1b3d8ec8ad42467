"""The slow path: a connection and its streams as objects."""
