"""What our tests add to pytest."""
