"""The embedded broker: librdkafka's mock behind a proxy."""
