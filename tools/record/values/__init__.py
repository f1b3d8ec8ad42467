"""Recorder of captures with values of real serializers; see `python -m tools.record.values`."""
