"""Older and slower implementations: the reference of differential tests."""
