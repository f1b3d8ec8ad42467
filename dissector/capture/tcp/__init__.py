"""Streams of TCP: order, loss, connections."""
