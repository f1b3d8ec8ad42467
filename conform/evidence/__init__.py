"""What rules look at: observations and the history of a capture."""
