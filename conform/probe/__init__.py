"""Probes: requests to a running broker for rules that no capture can show."""
