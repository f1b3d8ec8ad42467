"""The slow path: frames and correlation of one connection as objects."""
