"""The application: screens, keys, layout, and what it remembers."""
