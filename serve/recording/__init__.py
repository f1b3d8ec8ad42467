"""Contents of a capture: exchanges, cluster, and partition logs."""
