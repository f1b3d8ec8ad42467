"""Says which rules of Kafka's protocol a capture, or a live broker, breaks."""
