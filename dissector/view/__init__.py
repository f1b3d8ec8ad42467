"""Output as text, tables and JSON."""
