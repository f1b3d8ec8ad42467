"""Plays a plan: passes, players, dispatch, pacing, dry runs."""
