"""
Functions of users that take part in the work: hooks, of scripts (`--script`) and of packages.

They know nothing of captures, and nothing here knows what they are for: rooms above ask for the
hooks of a kind, and call them.
"""
