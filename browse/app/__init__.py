"""The application: screens, keys, layout, and settings."""
