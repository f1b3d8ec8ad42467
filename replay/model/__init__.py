"""Values that every room uses: steps, outcomes, offset ranges."""
