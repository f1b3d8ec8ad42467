"""Findings, their ranks, the report of them, and the sources that they come from."""
