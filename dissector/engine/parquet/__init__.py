"""Parquet files from columns, without an object for each value and without copies of rows."""
