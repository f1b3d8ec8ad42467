"""Screens of rules, applied to a window at once."""
