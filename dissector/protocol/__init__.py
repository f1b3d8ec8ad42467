"""The Kafka wire protocol; independent of captures."""
