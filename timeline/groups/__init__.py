"""Trackers of groups: classic groups, and groups with member epochs."""
