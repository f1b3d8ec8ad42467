"""Reading and writing logs, metadata, API versions."""
