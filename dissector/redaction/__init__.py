"""Redaction: a capture without names and contents, but with the same bytes around them."""
