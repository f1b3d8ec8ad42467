"""Sources of the segments of a capture, with the facts of its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol, TypeAlias

from dissector.capture.columns import Packets, Segments
from dissector.capture.formats.byte_source import StopSignal
from dissector.capture.formats.capture_reader import WINDOW_BYTES, read_packets
from dissector.capture.formats.conversions import Conversions
from dissector.capture.formats.inputs import Inputs
from dissector.capture.packets.layers import Layers
from dissector.engine.exchanges.log_columns import LogColumns
from dissector.engine.exchanges.packet_facts import NO_FACTS, PacketFacts
from dissector.engine.reading.packet_files import FileNames, TlsSecrets
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import Ints
from dissector.errors import Problem
from dissector.request_log import log_converter as log_converter

FileProblems: TypeAlias = list[tuple[str, Problem]]
"""Names of files, and their problems."""


class SegmentSource(Protocol):
    """
    Yields the segments of a capture in order.

    Attributes:
        packets: Packets read so far.
        bytes: Bytes of packets read so far.
        file_bytes: Bytes of the files read so far.
        begin_ns: Time of the first packet; 0 until it is known.
        networks: Names of the networks of segments, by number; it may grow.
        passed_over: Number of packets without a segment, by reason.
        unread_links: Number of packets of each link type that is not read.
        longest_packet: Captured bytes of the longest packet so far.
        tls_secrets: TLS key logs found in the files so far.
        logs: The request logs among the files.
        facts: What is kept of packets.
    """

    logs: LogColumns
    facts: PacketFacts
    packets: int
    bytes: int
    file_bytes: int
    begin_ns: int
    networks: list[str]
    passed_over: dict[str, int]
    unread_links: dict[int, int]
    longest_packet: int
    tls_secrets: TlsSecrets

    @property
    def paths(self) -> Sequence[str]:
        """Names of the files known so far."""

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Yield the segments, and the problems of the files."""

    def file_of(self, packet: int) -> str:
        """Return the name of the file that holds a packet."""

    def files_of(self, packets: Ints) -> Coded:
        """Return the names of the files that hold packets."""

    def places_of(self, packets: Ints) -> list[str]:
        """Return the file of each packet with its number there."""

    def places_text(self, packets: Iterable[int]) -> str:
        """Return the files of packets (from 1) with the numbers there; empty if it is one file."""


class FileSource(FileNames):
    """Reads files up to TCP; a `SegmentSource`."""

    def __init__(
        self,
        paths: Sequence[str],
        window_bytes: int = WINDOW_BYTES,
        stdin: BinaryIO | None = None,
        stop: StopSignal | None = None,
        inputs: Inputs | None = None,
        *,
        facts: PacketFacts = NO_FACTS,
        first_window_bytes: int | None = None,
        decode_as: Sequence[str] = (),
        timezone: str = "UTC",
    ) -> None:
        super().__init__()
        self.facts = facts
        self._paths = paths
        self._window_bytes = window_bytes
        self._first_window_bytes = first_window_bytes
        self._stdin = stdin
        self._stop = stop
        self._inputs = inputs
        self._conversions = Conversions(timezone)
        self.logs = LogColumns(self, self._conversions.found)
        self._layers = Layers(decode_as=decode_as)
        self.packets = 0
        self.bytes = 0
        self.file_bytes = 0
        self.begin_ns = 0
        self.longest_packet = 0
        self.networks = self._layers.networks
        self.passed_over = self._layers.passed_over
        self.unread_links = self._layers.unread_links

    @property
    def paths(self) -> Sequence[str]:
        """Names of the files."""
        return self._paths

    def windows(self) -> Iterator[tuple[Segments, FileProblems]]:
        """Read the files: the first stage."""
        for window in read_packets(
            self._paths,
            window_bytes=self._window_bytes,
            first_window_bytes=self._first_window_bytes,
            stdin=self._stdin,
            stop=self._stop,
            inputs=self._inputs,
            conversions=self._conversions,
        ):
            self._count(window)
            segments = self._layers.segments(window)
            segments.is_live = window.is_live
            yield segments, window.problems
            del window, segments  # their bytes, before the next one's are read
        self._layers.finish()

    def _count(self, packets: Packets) -> None:
        if not self.packets and len(packets):
            self.begin_ns = int(packets.time_ns[0])
        self.packets += len(packets)
        self.bytes += int(packets.captured.sum())
        self.longest_packet = max(self.longest_packet, int(packets.captured.max(initial=0)))
        self.file_bytes = packets.file_bytes
        self.tls_secrets += packets.tls_secrets
        self.facts.add(packets)
        self.add_window(packets, self._paths)
