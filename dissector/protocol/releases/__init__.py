"""The API versions that brokers of each Kafka release offer, and removals in releases."""
