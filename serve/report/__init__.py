"""What clients asked, and what the capture had no answer to."""
