"""The contents of a report, gathered in one pass in bounded memory."""
