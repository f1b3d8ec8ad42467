"""Answers about a whole capture: its clients, its consumer groups, an upgrade of its brokers."""
