"""How a record carries its schema: headers, prefixes, and envelopes that describe themselves."""
