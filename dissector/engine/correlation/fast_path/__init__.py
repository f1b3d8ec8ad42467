"""The fast path: kernels that frame and correlate on the state tables."""
