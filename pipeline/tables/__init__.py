"""Rows of the tables, and the values that only the whole collection can fill in."""
