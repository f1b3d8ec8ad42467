"""Columns in, columns out: streams become frames, frames become exchanges."""
