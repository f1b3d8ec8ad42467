"""Rows of lists: packed columns in memory, bytes in a file, selection and order."""
