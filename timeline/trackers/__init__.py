"""Trackers: a state machine for each kind of event."""
