"""The first pass of a redaction: the messages of captures are read and replaced."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dissector.capture.writing.plain_connections import Endpoint, PlainMessage
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.reader import Reading
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.headers import SASL_HANDSHAKE
from dissector.protocol.messages import Message
from dissector.redaction.messages.message_redactor import MessageRedactor
from dissector.redaction.messages.structured_values import StructuredValues
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.packets.stream_store import StreamStore
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms
from dissector.values.value_reader import ValueReader

_SIZE_BYTES = 4


class Redaction:
    """
    Replaces names and contents in the messages of a capture.

    Attributes:
        pseudonyms: The replacements, which `--map` writes.
        encrypted: TLS connections with omitted packets.
        stream: The replaced bytes of all streams.
    """

    def __init__(
        self, key: bytes, kept: Collection[ValueKind], names: TopicNames, *, decrypts: bool
    ) -> None:
        """
        Begin a redaction.

        Args:
            key: The same key gives the same pseudonyms.
            kept: Roles with unchanged values.
            names: Finds the names of topic ids.
            decrypts: Whether decrypted connections are written as plain TCP.
        """
        self.pseudonyms = Pseudonyms(key)
        self.encrypted: set[int] = set()
        self._values = ValueRedactor(self.pseudonyms, kept)
        self._messages = MessageRedactor(self._values, names.find_name)
        self._decrypts = decrypts
        self.stream = StreamStore()
        self._mechanisms: dict[int, str] = {}
        self._plain: dict[int, list[tuple[int, PlainMessage]]] = {}

    def keep_schemas(self, reader: ValueReader) -> None:
        """Replace keys and values that a reader decodes so that their schemas still read them."""
        self._messages.keep_schemas(StructuredValues(self._values, reader))

    def close(self) -> None:
        """Drop the reading."""
        self.stream.close()

    @property
    def lost_batches(self) -> int:
        """Number of compressed batches zeroed for want of a replacement of their length."""
        return self._messages.lost_batches

    def read(self, exchanges: Iterable[Exchange], reading: Reading) -> None:
        """Replace the messages of exchanges, in the order of the capture."""
        for exchange in exchanges:
            number = exchange.connection
            is_encrypted = is_decrypted(reading, number)
            if is_encrypted and not self._decrypts:
                self.encrypted.add(number)
                continue
            for message in exchange.messages:
                data = self._replaced(exchange, message)
                offset, side = exchange.place_of(message)
                frame = (message.size & 0xFFFFFFFF).to_bytes(_SIZE_BYTES, "big") + data
                self.stream.put(number, side, offset, frame)
                if is_encrypted:
                    self._note_plain(exchange, message, side, offset)

    def _replaced(self, exchange: Exchange, message: Message) -> bytes:
        number, request = exchange.connection, exchange.request
        is_request = message.kind == "request"
        if message.api_key == SASL_HANDSHAKE and is_request and message.body is not None:
            self._mechanisms[number] = message.body.mechanism
        mechanism = self._mechanisms.get(number)
        if exchange.is_token:
            return self._messages.token(message.frame, mechanism, from_client=is_request)
        return self._messages.redact(message, None if is_request else request, mechanism)

    def _note_plain(self, exchange: Exchange, message: Message, side: int, offset: int) -> None:
        """Record the packet that completed a message of a decrypted connection."""
        is_request = message.kind == "request"
        packet = exchange.request_packet if is_request else exchange.response_packet
        assert packet is not None
        sizes = _SIZE_BYTES + len(message.frame), _SIZE_BYTES + message.size
        found = PlainMessage(side, offset, *sizes)
        self._plain.setdefault(packet - 1, []).append((exchange.connection, found))

    def plain_messages(self, packet: int) -> Sequence[tuple[int, PlainMessage]]:
        """Return the decrypted messages that a packet has completed, with their connections."""
        return self._plain.get(packet, ())

    def address(self, data: bytes) -> bytes:
        """Return the replacement of 4 or 16 bytes of an IP address."""
        return data if self._values.keeps(ValueKind.HOST) else self.pseudonyms.raw_address(data)

    def endpoint(self, end: Endpoint) -> Endpoint:
        """Return the replacement of an endpoint; the port stays."""
        high, low, port = end
        if self._values.keeps(ValueKind.HOST):
            return end
        return *self.pseudonyms.address(high, low), port


def is_decrypted(reading: Reading, connection: int) -> bool:
    """Return whether a connection was encrypted, and has plaintext: its messages are of that."""
    summary = reading.decryption.summary_of(connection)
    return summary is not None and summary.plain_bytes > 0
