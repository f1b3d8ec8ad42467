"""Text for people: detail trees, summary lines, hex dumps, annotations."""
