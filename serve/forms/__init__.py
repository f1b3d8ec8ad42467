"""Conversion of messages to canonical versions, and back to the versions of clients."""
