"""A Kafka client: transport, login, requests in flight, metadata and routing."""
