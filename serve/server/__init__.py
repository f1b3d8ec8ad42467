"""Listeners for clients, and their connections."""
