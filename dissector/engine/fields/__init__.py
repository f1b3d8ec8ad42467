"""Every field of a message as a row, with its text and its offset in the frame."""
