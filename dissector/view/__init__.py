"""Output for people and programs: text, tables, JSON."""
