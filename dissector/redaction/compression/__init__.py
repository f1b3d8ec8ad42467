"""Compression of replaced records to exactly the length that the original ones had."""
