"""Columns, the table of exchanges, and their polars frames."""
