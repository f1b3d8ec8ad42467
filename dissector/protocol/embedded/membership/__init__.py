"""Protocols inside group messages: subscriptions and assignments."""
