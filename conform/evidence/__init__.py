"""The evidence that rules examine: observations, and the history of a capture."""
