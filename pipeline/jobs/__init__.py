"""Spark: session, stages, data source and summaries; the same in local processes."""
