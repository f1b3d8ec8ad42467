"""Capture files of the traffic with clients."""
