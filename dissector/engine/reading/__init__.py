"""The pass over a capture: source, stages, order of packets, statistics."""
