"""Messages with names and contents replaced in place, field by field, by declared roles."""
