"""Requests between brokers and the controller."""
