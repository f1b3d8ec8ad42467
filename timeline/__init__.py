"""Timelines: events of groups, producers, transactions, consumers, connections and clusters."""
