"""What users of tshark know: its forms of output, and its statistics by our commands."""
