"""What a report of advice says, and its formats."""
