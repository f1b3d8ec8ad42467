"""What a replay is asked to do: target, login, pace, limits, criteria."""
