"""A collection of captures, divided into byte ranges and shards by connection."""
