"""Rows as tables, CSV and ndjson."""
