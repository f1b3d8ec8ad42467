"""Which captured exchange a request means."""
