"""What a pass over a capture shows of its clients: totals in columns."""
