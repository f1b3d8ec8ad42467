"""Timelines: what happened to groups, producers, transactions, consumers, connections, clusters."""
