"""Packets that are written: connections as plain TCP, and their file."""
