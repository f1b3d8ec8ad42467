"""Rules for all APIs: framing, encoding, versions, responses."""
