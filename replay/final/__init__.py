"""What the target holds at the end of a pass, against what the replay wrote and was shown."""
