"""Captured values and their counterparts on the target, and requests rewritten by them."""
