"""The interpreter that reads fields of many messages into columns."""
