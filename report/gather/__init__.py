"""What a report shows of a capture, gathered in one pass in bounded memory."""
