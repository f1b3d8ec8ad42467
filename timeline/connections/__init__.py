"""Trackers of connections: opened, refused, silent, slow, with their logins and their ends."""
