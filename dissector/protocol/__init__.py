"""The Kafka wire protocol; knows nothing of captures."""
