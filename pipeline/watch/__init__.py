"""Streaming: a watched folder, and the state between its batches."""
