"""What objects and kernels share: columns and arrays of the state, and limits."""
