"""Reads Apache Kafka traffic out of packet captures."""
