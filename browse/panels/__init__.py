"""Panels over the list: keys, problems, statistics, groups, a conversation; and the questions."""
