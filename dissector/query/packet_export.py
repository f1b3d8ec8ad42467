"""The packets of the exchanges that pass a filter, checked to give the same exchanges again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, TypeAlias

import numpy as np

from dissector.capture.columns import unique
from dissector.capture.formats.capture_reader import is_rereadable
from dissector.engine.export.exchange_sums import ExchangeSums, differing, exchange_hashes
from dissector.engine.export.flow_filter import Bools, FlowFilter
from dissector.engine.export.name_definitions import NameDefinitions
from dissector.engine.export.selected_packets import SelectedPackets, write_packets
from dissector.engine.export.stream_ranges import StreamRanges
from dissector.engine.reading.capture import Capture, Options, Reading, Window
from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES, NamedPath, check_outputs, written_when_complete
from dissector.protocol.context import using
from dissector.query.contents.captured_schemas import registry_exchanges
from dissector.query.selection import Selection

if TYPE_CHECKING:
    from dissector.capture.tcp.connection_table import ConnectionTable
    from dissector.engine.export.flow_filter import Hashes

_NUMBERED = re.compile(
    r"\b(connection|capture|packet|\w+_packet|tcp\.stream|frame\.(number|time_relative))\b"
)
"""Names in a filter with other values in a part of the capture."""

MASKS_REFUSED = "--mask: export writes packets as they are; --redact replaces contents"

MAX_CHECKS = 4
"""Maximum number of selections: the messages, more connections, all of those, everything."""


class Pass(Protocol):
    """A capture that is about to be read once."""

    @property
    def selection(self) -> Selection:
        """What passes."""

    def each_window(self, *, gleaning: bool = False) -> Iterator[Window]:
        """Yield all windows; see `Capture.windows`."""


OpenPass: TypeAlias = Callable[[str | None, bool], Pass]
"""Returns a pass, by a filter; the second argument is whether it is a pass for a check."""


class ExportCounts(NamedTuple):
    """
    What an export wrote.

    Attributes:
        exchanges: Exchanges that pass.
        connections: Their connections.
        packets: Packets in the export.
        packets_read: Packets of the capture.
        differing: Connections with other exchanges in the export than in the capture.
    """

    exchanges: int
    connections: int
    packets: int
    packets_read: int
    differing: int


@dataclass(frozen=True, slots=True)
class PacketExport:
    """
    The chosen packets.

    Attributes:
        paths: The captures.
        options: How they were read.
        flows: The packets.
        exchanges: Number of exchanges that pass.
        connections: Number of their connections.
        differing: Number of connections that have other exchanges in the chosen packets.
        has_fragments: Whether chosen packets are IP fragments.
    """

    paths: list[str]
    options: Options
    flows: FlowFilter
    exchanges: int
    connections: int
    differing: int
    has_fragments: bool

    def write(self, file: BinaryIO) -> tuple[int, int]:
        """Write them as pcapng; return their number, and the number of all."""
        return write_packets(
            self.paths, self.flows, file, self.options, fragments=self.has_fragments
        )


def export_capture(
    capture: Capture, text: str | None, output: str | Path, *, connections: bool
) -> ExportCounts:
    """
    Write the packets of the exchanges of a capture that pass, in quiet.

    Args:
        capture: The capture.
        text: The filter; None: all pass.
        output: The file to write.
        connections: Whether to write whole connections.

    Raises:
        UsageError: An input can be read once only, or is the output; the file can't be written;
            the capture has masks.
    """
    if capture.options.values is not None and capture.options.values.masks:
        raise UsageError("masks: export writes packets as they are")
    options, name = replace(capture.options, keep_copies=True, live=False), str(output)
    for path in capture.paths:
        if not is_rereadable(path, options.inputs):
            raise UsageError(f"{path}: export reads a capture several times; save it to a file")
    read = (*(each for each in capture.paths if each not in options.inputs), *options.keylogs)
    inputs = (NamedPath(each, "an input", READS) for each in read)
    if Path(name).exists() and not Path(name).is_file():
        raise UsageError(f"{name} is no file; export writes a pcapng file")
    check_outputs([*inputs, NamedPath(name, "export", WRITES)])

    def opened(text: str | None, is_check: bool) -> Pass:
        return _QuietPass(Selection.of(Capture(capture.paths, replace(options)), text))

    found = choose_packets(opened, text, connections=connections)
    if found is None:
        raise UsageError("the reading of the capture was stopped")
    try:
        with written_when_complete(Path(name)) as file:
            written = found.write(file)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    return ExportCounts(found.exchanges, found.connections, *written, found.differing)


@dataclass(frozen=True, slots=True)
class _QuietPass:
    selection: Selection

    def each_window(self, *, gleaning: bool = False) -> Iterator[Window]:
        return self.selection.capture.windows(gleaning=gleaning)


def choose_packets(opened: OpenPass, text: str | None, *, connections: bool) -> PacketExport | None:
    """
    Return the packets of the exchanges that pass; None if the reading is stopped.

    The capture is read once, and the chosen packets are then dissected, until they give the same
    exchanges.

    Args:
        opened: Opens the capture for each pass.
        text: The filter.
        connections: Whether to choose whole connections.
    """
    selection = _select(opened(text, False), by_numbers=bool(_NUMBERED.search(text or "")))
    if selection.is_stopped:
        return None
    chosen = selection.connections()
    whole = chosen if connections else selection.tls_connections()
    for _ in range(MAX_CHECKS):
        flows = FlowFilter.of(selection.ranges, selection.table, whole)
        again = opened(text if selection.hashes is None else None, True)
        check = _check(again, selection, flows)
        if not check.differing.any() or check.is_stopped:
            break
        # Missing packets may be needed to find the messages; the last selection is the whole
        # capture.
        more = next((each for each in (check.differing, chosen) if (each & ~whole).any()), ~whole)
        whole = whole | more
    if check.is_stopped:
        return None
    return PacketExport(
        again.selection.capture.paths,
        check.options,
        flows,
        selection.count,
        int(chosen.sum()),
        int(check.differing.sum()),
        check.has_fragments,
    )


@dataclass
class _Matches:
    """
    The matching exchanges.

    Attributes:
        reading: The reading that found it.
        ranges: The bytes of its messages.
        sums: Its exchanges, for comparison.
        hashes: All their hashes, if the filter can't be applied to a part of the capture.
        count: Number of exchanges.
    """

    reading: Reading
    ranges: StreamRanges
    sums: ExchangeSums
    hashes: Hashes | None
    count: int

    @property
    def table(self) -> ConnectionTable:
        """The connections of the capture."""
        return self.reading.streams.connections

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C has ended the reading."""
        return self.reading.options.stop.is_requested

    def connections(self) -> Bools:
        """Return the connections with a matching exchange."""
        chosen = np.zeros(len(self.table), np.bool_)
        chosen[self.ranges.columns()[0]] = True
        return chosen

    def tls_connections(self) -> Bools:
        """Return the TLS connections: decrypting a part requires the whole connection."""
        is_tls = self.connections()
        for number in np.flatnonzero(is_tls).tolist():
            is_tls[number] = self.reading.decryption.summary_of(number) is not None
        return is_tls


class _Check(NamedTuple):
    """
    The exchanges of the chosen packets, compared with the capture's.

    Attributes:
        differing: Connections of the capture with other exchanges between their endpoints.
        has_fragments: Whether packets are IP fragments.
        options: How they were read.
    """

    differing: Bools
    has_fragments: bool
    options: Options

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C has ended the reading."""
        return self.options.stop.is_requested


def _select(reading: Pass, *, by_numbers: bool) -> _Matches:
    """Read the capture; `by_numbers`: the filter has numbers that a part has not."""
    ranges, naming, sums = StreamRanges(), StreamRanges(), ExchangeSums()
    definitions, hashes, count = NameDefinitions(), [np.zeros(0, np.uint64)], 0
    selection, capture = reading.selection, reading.selection.capture
    for window in reading.each_window(gleaning=selection.needs_summaries):
        table = selection.exchange_table(window)
        count += len(table)
        ranges.add(table)
        sums.add(table)
        if by_numbers:
            hashes.append(exchange_hashes(table))
        with using(capture.options.schemas):
            definitions.look_up(table)
            naming.add(definitions.find(window.exchanges))
        if selection.values is not None:
            ranges.add(registry_exchanges(capture, window))
    if definitions.are_needed:
        ranges.extend(naming)
    assert capture.reading is not None
    found = unique(np.concatenate(hashes)) if by_numbers else None
    return _Matches(capture.reading, ranges, sums, found, count)


def _check(reading: Pass, chosen: _Matches, flows: FlowFilter) -> _Check:
    """Dissect the packets to be written."""
    selection, capture = reading.selection, reading.selection.capture
    options = capture.options
    capture.make_source = lambda: SelectedPackets(capture.paths, flows, options)
    sums = ExchangeSums()
    for window in reading.each_window(gleaning=selection.needs_summaries):
        table = selection.exchange_table(window)
        if chosen.hashes is not None:
            table = table.rows(np.flatnonzero(np.isin(exchange_hashes(table), chosen.hashes)))
        sums.add(table)
    assert capture.reading is not None
    assert isinstance(capture.reading.source, SelectedPackets)
    found = sums.by_endpoints(capture.reading.streams.connections)
    expected = chosen.sums.by_endpoints(chosen.table)
    different = differing(expected, found, chosen.table)
    return _Check(different, capture.reading.source.has_fragments, options)
