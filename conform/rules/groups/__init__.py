"""Rules of classic, consumer, share and streams groups."""
