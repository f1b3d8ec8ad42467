"""What each field of a message means: roles, and walks over bodies by role."""
