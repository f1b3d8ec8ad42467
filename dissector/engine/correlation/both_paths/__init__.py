"""Code shared by objects and kernels: columns and arrays of the state, limits, checks of frames."""
