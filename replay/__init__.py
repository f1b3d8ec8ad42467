"""Plays captured Kafka traffic at another broker."""
