"""Narrowing of the list: the filter bar and its suggestions, body filters, following."""
