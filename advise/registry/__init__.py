"""What an advice is, its thresholds, and what was found."""
