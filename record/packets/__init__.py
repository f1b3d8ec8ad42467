"""The forwarded bytes as packets in capture files."""
