"""Asks a running broker for what no capture can show."""
