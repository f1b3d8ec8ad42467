"""TLS: key logs, handshakes and records to plaintext, without input or output."""
