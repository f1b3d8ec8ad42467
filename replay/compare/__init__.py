"""Comparison of live with captured responses: differences and verdicts."""
