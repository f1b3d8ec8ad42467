"""The first pass of a redaction: the messages of captures are read and replaced."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from dissector.capture.writing.plain_connections import Endpoint, PlainMessage
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_facts import is_bulk_worthwhile, read_topic_names
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.fields.message_places import SIDES
from dissector.engine.reading.capture import Capture
from dissector.engine.reading.reader import Reading, Window
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.api import Kind
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.headers import SASL_HANDSHAKE
from dissector.protocol.messages import Message
from dissector.redaction.messages.message_redactor import MessageRedactor
from dissector.redaction.messages.structured_values import StructuredValues
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.packets.stream_store import StreamStore
from dissector.redaction.pseudonyms.distinct_contents import Bools
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms
from dissector.redaction.windows.frame_kernels import SIZE_BYTES
from dissector.redaction.windows.window_redactor import RedactedWindow, WindowRedactor
from dissector.values.value_reader import ValueReader


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
        self._windows = WindowRedactor(self._values, self._messages.records, names.find_name)
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

    def read(self, capture: Capture, window: Window) -> None:
        """Replace the messages of a window; windows come in the order of the capture."""
        table, reading = window.exchanges, capture.reading
        assert reading is not None
        if not is_bulk_worthwhile(table):
            for exchange in capture.exchanges_of(window):
                self._read_exchange(exchange, reading)
            return
        capture.names.learn(read_topic_names(table))
        done = self._windows.redact(table, self._in_columns(table, reading))
        self._store(table, done)
        for row, kinds in done.unread():
            exchange = reading.exchange(table, row, capture.names)
            self._read_exchange(exchange, reading, kinds)

    def _in_columns(self, table: Exchanges, reading: Reading) -> Bools:
        """Return which exchanges may be replaced in columns: not those of TLS, nor of logins."""
        numbers, of_row = np.unique(table.connection, return_inverse=True)
        encrypted = [is_decrypted(reading, each) for each in numbers.tolist()]
        chosen: Bools = ~np.array(encrypted, np.bool_)[of_row] & (table.api_key != SASL_HANDSHAKE)
        return chosen

    def _store(self, table: Exchanges, done: RedactedWindow) -> None:
        """Store the messages that were replaced in columns."""
        messages, chosen = done.messages, done.is_done
        row, side = messages.row[chosen], messages.side[chosen]
        client = table.client[row].astype(np.int64)
        columns = (
            table.connection[row],
            np.where(side == 0, client, 1 - client),
            messages.offset[chosen],
            done.at[chosen],
            SIZE_BYTES + messages.captured_bytes[chosen],
        )
        self.stream.put_all(np.stack(columns), done.data)

    def _read_exchange(
        self, exchange: Exchange, reading: Reading, kinds: Collection[Kind] = SIDES
    ) -> None:
        """Replace the messages of these kinds of an exchange."""
        number = exchange.connection
        is_encrypted = is_decrypted(reading, number)
        if is_encrypted and not self._decrypts:
            self.encrypted.add(number)
            return
        for message in exchange.messages:
            if message.kind not in kinds:
                continue
            data = self._replaced(exchange, message)
            offset, side = exchange.place_of(message.kind)
            frame = (message.size & 0xFFFFFFFF).to_bytes(SIZE_BYTES, "big") + data
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
        sizes = SIZE_BYTES + len(message.frame), SIZE_BYTES + message.size
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
