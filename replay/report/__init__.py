"""Results of a replay as numbers, text, ndjson, HTML and JUnit."""
