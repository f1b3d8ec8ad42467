"""Captures with a display filter: exchanges, records, fields and connections that pass."""
