"""A file of packets becomes the ordered bytes of each TCP direction; independent of Kafka."""
