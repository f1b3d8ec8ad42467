"""How commands show rows: columns, order, times, colour; names for completion and help."""
