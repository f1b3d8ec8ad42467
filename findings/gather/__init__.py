"""What sources of findings read: one pass over a capture, in bounded memory."""
