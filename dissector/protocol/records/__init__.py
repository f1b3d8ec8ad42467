"""What is inside a `records` field: record batches, message sets, control records, compression."""
