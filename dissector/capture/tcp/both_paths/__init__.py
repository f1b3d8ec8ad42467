"""Code shared by objects and kernels: columns and arrays of the state, and limits."""
