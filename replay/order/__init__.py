"""What each captured request reads and writes, and which others it must follow."""
