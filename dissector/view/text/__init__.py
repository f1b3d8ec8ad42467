"""Text for people: trees, lines, hex dumps, annotations."""
