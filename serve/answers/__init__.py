"""Answers to requests: adapted from the capture, or composed from its state."""
