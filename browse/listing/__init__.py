"""The list: rows in columns, read in the background, filtered, sorted, searched and painted."""
