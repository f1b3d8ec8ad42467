"""Settings of a replay: target, authentication, pacing, limits and criteria."""
