"""Schema registries: exchanges with them in bytes of connections, and a client that asks one."""
