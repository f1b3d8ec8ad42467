"""Export: the packets of chosen exchanges, as a capture with the same rows."""
