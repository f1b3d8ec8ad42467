"""Keyed pseudonyms: of the same length, one to one, the same in all captures with one key."""
