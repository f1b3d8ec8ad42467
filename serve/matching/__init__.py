"""Matching of requests with captured exchanges."""
