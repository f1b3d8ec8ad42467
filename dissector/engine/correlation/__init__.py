"""Stream bytes to frames, and frames to exchanges."""
