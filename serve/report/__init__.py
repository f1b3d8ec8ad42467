"""Report of requests and misses."""
