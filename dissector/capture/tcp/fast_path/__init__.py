"""The fast path: kernels that process segments on rows of connections."""
