"""Panels over the list: keys, what stands out, statistics, groups, conversations, and dialogs."""
