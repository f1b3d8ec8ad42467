"""Text output: detail trees, summary lines, hex dumps, annotations."""
