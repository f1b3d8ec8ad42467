"""Produce requests of one shape, sent by patching bytes."""
