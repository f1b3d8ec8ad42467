"""A report of findings as text, page, lines of JSON, and for test runners and scanners."""
