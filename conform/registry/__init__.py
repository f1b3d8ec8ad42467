"""Rules, findings, ranks and the releases of Kafka."""
