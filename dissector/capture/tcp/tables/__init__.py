"""The state of all connections: tables for kernels, and their objects."""
