"""Panels over the list: keys, problems, statistics, groups, conversations, and dialogs."""
