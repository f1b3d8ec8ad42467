"""Verdicts as text, ndjson, JUnit, HTML and SARIF."""
