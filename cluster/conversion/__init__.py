"""Bodies in other versions of an API, and names for its resources."""
