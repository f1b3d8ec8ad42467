"""Injected faults: errors, delays, and closed connections."""
