"""One form of each message for all versions, and the way back to the version of a client."""
