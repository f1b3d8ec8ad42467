"""Answers of the target against captured answers: differences and verdicts."""
