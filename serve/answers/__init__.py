"""Answers: captured ones as they fit now, and those that only a live broker knows."""
