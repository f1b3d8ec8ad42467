"""Idempotent producers and transactions."""
