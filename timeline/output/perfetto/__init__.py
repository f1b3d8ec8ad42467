"""Traces for Perfetto: exchanges as slices, events on tracks, counters, flows."""
