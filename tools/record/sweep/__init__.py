"""The sweep: every API at every version that a broker offers, from our own client."""
