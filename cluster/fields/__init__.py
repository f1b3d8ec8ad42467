"""Roles of fields, walks over bodies by role, and record batches."""
