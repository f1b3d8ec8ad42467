"""Trackers of groups: classic ones, and those with member epochs."""
