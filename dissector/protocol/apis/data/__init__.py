"""Reads and writes of logs, metadata, offered versions."""
