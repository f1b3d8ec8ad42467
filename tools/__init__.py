"""What people who work on this project run by hand."""
