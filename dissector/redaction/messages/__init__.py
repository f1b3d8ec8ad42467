"""Messages whose names and contents are replaced in place, field by field, by declared roles."""
