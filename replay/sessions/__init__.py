"""Protocol state that outlives a request: groups, heartbeats, sessions, transactions, retries."""
