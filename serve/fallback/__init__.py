"""Fallbacks for requests without a captured answer: another cluster, or the embedded broker."""
