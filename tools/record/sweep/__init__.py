"""The sweep: all APIs at all versions of a broker, sent by kafkashark's own client."""
