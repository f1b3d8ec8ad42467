"""Connections of clients, forwarded to the brokers of a cluster."""
