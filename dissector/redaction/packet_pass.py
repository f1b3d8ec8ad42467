"""The second pass of a redaction: packets with the replacements of the first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import SEVERAL, Packets, Segments
from dissector.capture.formats.byte_source import StopSignal
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.iana_numbers import ETHERNET, WIRESHARK_UPPER_PDU
from dissector.capture.packets.layers import Layers
from dissector.capture.packets.link_layers import link_name
from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.capture.writing.plain_connections import PlainConnection
from dissector.engine.export.flow_filter import FlowFilter
from dissector.engine.reading.reader import Reading
from dissector.engine.tables.exchange_table import Ints
from dissector.errors import UsageError
from dissector.redaction.packets.located_headers import HeaderFinder, Located, in_known_link
from dissector.redaction.packets.packet_redactor import PacketRedactor
from dissector.redaction.packets.plain_packets import PlainBlocks, PlainPackets, PlainPayloads
from dissector.redaction.packets.position_kernels import NO_STREAM
from dissector.redaction.packets.stream_index import Positions, StreamIndex
from dissector.redaction.redacted_mark import REDACTED
from dissector.redaction.redaction import Redaction, is_decrypted


def write_redacted(
    paths: Sequence[str],
    flows: FlowFilter,
    redaction: Redaction,
    reading: Reading,
    file: BinaryIO,
    stop: StopSignal,
) -> tuple[int, int]:
    """
    Write the packets of chosen flows; return how many, of how many.

    Args:
        paths: The captures.
        flows: Selects segments.
        redaction: The replacements of the messages in the reading.
        reading: The finished reading of all messages.
        file: Gets the packets as pcapng.
        stop: Ends the writing.
    """
    written = _PacketPass(redaction, reading, CaptureWriter(file, REDACTED))
    layers, total, sections = Layers(decode_as=reading.options.decode_as), 0, set[int]()
    for window in read_packets(paths, stop=stop):
        # Files that are merged by time share a section.
        if window.path_index not in sections and SEVERAL not in sections:
            written.out.start_section()
            sections.add(window.path_index)
        segments = layers.segments(window)
        written.write(window, segments, flows.passing(segments))
        total += len(window)
        del window, segments
    return written.out.packets, total


class _Window(NamedTuple):
    """
    Packets of a window.

    Attributes:
        packets: All of them.
        segments: Their segments.
        plain: Which are plain.
        found: The headers, and the link type, of chosen others.
    """

    packets: Packets
    segments: Segments
    plain: PlainPackets
    found: dict[int, tuple[Located, int]]


class _PacketPass:
    """
    The packets of captures, in order.

    Attributes:
        out: Gets the chosen ones.
    """

    def __init__(self, redaction: Redaction, reading: Reading, out: CaptureWriter) -> None:
        self.out = out
        self._redaction = redaction
        self._reading = reading
        self._index = StreamIndex(reading.streams.connections)
        self._finder = HeaderFinder(reading.options.decode_as)
        self._packets = PacketRedactor(redaction.address, redaction.pseudonyms.mac)
        self._plain: dict[int, PlainConnection] = {}

    def write(self, packets: Packets, segments: Segments, passing: NDArray[np.bool_]) -> None:
        """Write the packets of a window with passing segments."""
        number = segments.packet - packets.first
        row_of = np.full(len(packets), -1, np.int64)
        row_of[number] = np.arange(len(segments))
        plain = PlainPackets(packets)
        is_passing = row_of >= 0
        is_passing[is_passing] = passing[row_of[is_passing]]
        is_plain = plain.is_plain & is_passing
        found: dict[int, tuple[Located, int]] = {}
        # Packets without a segment may be fragments, which the finder must see.
        for each in np.flatnonzero(~plain.is_plain & (is_passing | (row_of < 0))).tolist():
            located = self._find(packets, each)
            if located is not None and is_passing[each]:
                found[each] = located
        is_plain[list(found)] = True
        chosen = np.flatnonzero(is_plain)
        positions = self._index.positions(segments, row_of[chosen])
        window = _Window(packets, segments, plain, found)
        self._write_window(window, chosen, row_of[chosen], positions)

    def _write_window(
        self, window: _Window, numbers: Ints, rows: Ints, positions: Positions
    ) -> None:
        """Write chosen packets: runs of plain ones at once, others one by one."""
        is_single = ~window.plain.is_plain[numbers]
        distinct, number = np.unique(positions.stream >> 1, return_inverse=True)
        decrypted = [
            each != NO_STREAM and is_decrypted(self._reading, each) for each in distinct.tolist()
        ]
        is_single |= np.array(decrypted, np.bool_)[number]
        blocks = self._blocks(window, numbers, positions, is_single)
        if blocks is None:
            is_single[:] = True
        times = window.packets.time_ns
        done = 0
        for at in (*np.flatnonzero(is_single).tolist(), len(numbers)):
            if at > done and blocks is not None:
                self.out.write_blocks(ETHERNET, *blocks.between(done, at))
            done = at + 1
            if at == len(numbers):
                return
            number, row = int(numbers[at]), int(rows[at])
            located = window.found.get(number) or self._find(window.packets, number)
            if located is not None:
                position = int(positions.stream[at]), int(positions.offset[at])
                self._write_packet(*located, window.segments, row, position, int(times[number]))

    def _blocks(
        self,
        window: _Window,
        numbers: Ints,
        positions: Positions,
        is_single: NDArray[np.bool_],
    ) -> PlainBlocks | None:
        """Return the blocks of all but single packets; None if addresses could not be replaced."""
        stream, offset = (each[~is_single] for each in positions)
        redaction = self._redaction
        return window.plain.blocks(
            PlainPayloads(np.flatnonzero(~is_single), numbers[~is_single], stream, offset),
            redaction.stream,
            (redaction.pseudonyms.mac, redaction.address),
        )

    def _find(self, packets: Packets, number: int) -> tuple[Located, int] | None:
        """Return the located headers of a packet, and its link type in the redacted capture."""
        start, captured = int(packets.start[number]), int(packets.captured[number])
        content = packets.data[start : start + captured].tobytes()
        link, original = int(packets.link[number]), int(packets.original[number])
        if link == WIRESHARK_UPPER_PDU:
            raise UsageError(
                f"export --redact can't write exported PDUs, link type {link_name(link)}"
            )
        plain = in_known_link(content, link, original)
        if plain is None:
            return None
        content, link, original = plain
        found = self._finder.find(content, link, original, int(packets.time_ns[number]))
        return None if found is None else (found, link)

    def _write_packet(
        self,
        found: Located,
        link: int,
        segments: Segments,
        row: int,
        position: tuple[int, int],
        time_ns: int,
    ) -> None:
        length = found.end - found.payload_at
        stream, offset = position
        if stream == NO_STREAM:
            payload = bytes(length)
        elif is_decrypted(self._reading, stream >> 1):
            self._write_plain(segments, row, stream, time_ns)
            return
        else:
            payload = self._redaction.stream.get(stream >> 1, stream & 1, offset, length)
        self.out.write(time_ns, link, self._packets.redact(found, link, payload), found.original)

    def _write_plain(self, segments: Segments, row: int, stream: int, time_ns: int) -> None:
        """Write the plaintext that a packet of an encrypted connection completed, if any."""
        connection = self._plain.get(stream >> 1)
        for number, message in self._redaction.plain_messages(int(segments.packet[row])):
            if connection is None:
                a, b = self._reading.streams.connections.endpoints(number)
                replace = self._redaction.endpoint
                connection = PlainConnection(replace(a), replace(b))
                self._plain[number] = connection
                self._write_all(connection.open(), time_ns)
            place = number, message.side, message.offset, message.length
            data = self._redaction.stream.get(*place)
            self._write_all(connection.message(message, data), time_ns)
        if connection is not None:
            self._write_all(connection.end(stream & 1, int(segments.flags[row])), time_ns)

    def _write_all(self, packets: Iterable[bytes], time_ns: int) -> None:
        for each in packets:
            self.out.write(time_ns, ETHERNET, each, len(each))
