"""
Kafka's message definitions (JSON), read into the notation of `dissector.protocol.schema`.

`files` finds them, `reader` reads one, `structure` compares two declarations.

Source: Kafka, clients/src/main/resources/common/message/README.md.
"""
