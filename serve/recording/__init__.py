"""What a capture shows: exchanges, the cluster, logs of partitions."""
