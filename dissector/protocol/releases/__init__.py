"""The API versions that the brokers of each Kafka release offer, and what releases removed."""
