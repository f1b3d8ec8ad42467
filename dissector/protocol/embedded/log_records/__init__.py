"""Records of Kafka's own topics and of the metadata log."""
