"""What objects and kernels share: columns and arrays of the state, limits, checks of frames."""
