"""Faults on purpose: errors, delays, closed connections, for requests that pass a filter."""
