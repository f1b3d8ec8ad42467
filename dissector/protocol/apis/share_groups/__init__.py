"""Share groups (KIP-932) and their state."""
