"""The same tables on Spark."""
