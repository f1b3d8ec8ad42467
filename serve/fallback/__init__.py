"""What answers in place of the capture: another cluster, or the embedded broker."""
