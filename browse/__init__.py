"""The screen: a list of exchanges, the fields of one, and its bytes, in a terminal or a browser."""
