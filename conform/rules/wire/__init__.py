"""Rules of framing, encoding, versions and answers, whatever the API."""
