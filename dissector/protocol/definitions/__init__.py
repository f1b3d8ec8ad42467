"""
Kafka's message definitions (JSON), converted to the notation of `dissector.protocol.schema`.

`files` finds them, `definition_reader` reads one, `overlay` puts them over the built-in
declarations, `structure` compares two declarations.

Source: Kafka, clients/src/main/resources/common/message/README.md.
"""
