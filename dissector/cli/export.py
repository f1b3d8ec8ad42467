"""`kafkashark export`: the packets of matching traffic, as a smaller capture with the same rows."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dissector.capture.formats.capture_reader import is_file
from dissector.cli import capture_source, redaction_options
from dissector.cli.declared.file_options import ExportOptions
from dissector.cli.output import is_terminal, open_atomic
from dissector.engine.export.exchange_sums import ExchangeSums, differing, exchange_hashes
from dissector.engine.export.flow_filter import Bools, FlowFilter
from dissector.engine.export.name_definitions import NameDefinitions
from dissector.engine.export.selected_packets import SelectedPackets, write_packets
from dissector.engine.export.stream_ranges import StreamRanges
from dissector.errors import UsageError
from dissector.protocol.context import using
from dissector.query.captured_schemas import registry_exchanges
from dissector.redaction.packet_pass import write_redacted
from dissector.redaction.redaction import Redaction
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from dissector.capture.formats.byte_source import StopSignal
    from dissector.capture.tcp.connection_table import ConnectionTable
    from dissector.engine.export.flow_filter import Hashes
    from dissector.engine.reading.reader import Reading

_NUMBERED = re.compile(
    r"\b(connection|capture|packet|\w+_packet|tcp\.stream|frame\.(number|time_relative))\b"
)
"""Names in a filter with other values in a part of the capture."""

MAX_CHECKS = 4
"""Maximum number of selections: the messages, more connections, all of those, everything."""


def export(given: ExportOptions) -> None:
    """Write the packets of the exchanges that pass a filter to a pcapng file."""
    captures, filter_text, output = list(given.captures), given.selected, given.output
    if output is None or is_terminal(output):
        raise UsageError("export requires an output file: -o OUT.pcapng")
    for name in captures:
        if name == "-" or (Path(name).exists() and not is_file(name)):
            raise UsageError(f"{name}: export reads a capture several times; save a pipe to a file")
    if given.masks and not given.redact:
        raise UsageError("--mask: export writes packets as they are; --redact replaces contents")
    kept, secret = redaction_options.kept_roles(given), redaction_options.read_key(given.key)

    def source(text: str | None) -> capture_source.Source:
        made = capture_source.source(given, text)
        # Connections that the capture holds twice are packets too, with the same secrets.
        made.capture.options.keep_copies = True
        return made

    selection = _select(source(filter_text), by_numbers=bool(_NUMBERED.search(filter_text or "")))
    if selection.is_stopped:
        return
    chosen = selection.connections()
    whole = chosen if given.connections else selection.tls_connections()
    for _ in range(MAX_CHECKS):
        flows = FlowFilter.of(selection.ranges, selection.table, whole)
        check = _check(source(filter_text), selection, flows)
        if not check.differing.any() or check.is_stopped:
            break
        # Missing packets may be needed to find the messages; the last selection is the whole
        # capture.
        more = next((each for each in (check.differing, chosen) if (each & ~whole).any()), ~whole)
        whole = whole | more
    if check.is_stopped:
        return
    if given.redact:
        whole_source = source(None)
        redaction = Redaction(secret, kept, whole_source.capture.names, decrypts=given.decrypt)
        if given.keep_schema:
            redaction.keep_schemas(whole_source.record_values().reader)
        with closing(redaction):
            _read_all(redaction, whole_source)
            stop, reading = whole_source.capture.options.stop, whole_source.capture.reading
            if stop.is_requested or reading is None:
                return
            with open_atomic(output) as file:
                copied, total = write_redacted(captures, flows, redaction, reading, file, stop)
            _report_redaction(redaction, given.map_file)
    else:
        with open_atomic(output) as file:
            copied, total = write_packets(
                captures,
                flows,
                file,
                check.stop,
                fragments=check.has_fragments,
                decode_as=given.decode_as,
            )
    count = f"{selection.count:,} exchanges on {int(chosen.sum()):,} connections"
    print(f"{count}: {copied:,} of {total:,} packets")
    if differing_count := int(check.differing.sum()):
        text = f"{differing_count:,} connections have other rows in {output} than before"
        print("kafkashark:", escaped(text), file=sys.stderr)


def _read_all(redaction: Redaction, source: capture_source.Source) -> None:
    """Read and replace all messages of the capture, regardless of the filter."""
    source.reports_unreadable = True
    for window in source.each_window():
        assert source.capture.reading is not None
        with using(source.capture.options.schemas):
            redaction.read(source.capture.exchanges_of(window), source.capture.reading)


def _report_redaction(redaction: Redaction, map_file: str | None) -> None:
    if map_file is not None:
        redaction_options.write_map(map_file, redaction.pseudonyms.replaced())
    notes = []
    if count := redaction.lost_batches:
        notes.append(f"{count:,} compressed record batches are zeros: none of their size is legal")
    if count := len(redaction.encrypted):
        notes.append(f"{count:,} TLS connections are left out; --decrypt writes them as plain TCP")
    for note in notes:
        print("kafkashark:", note, file=sys.stderr)


@dataclass
class _Selection:
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
        stop: Set by Ctrl-C.
    """

    differing: Bools
    has_fragments: bool
    stop: StopSignal

    @property
    def is_stopped(self) -> bool:
        """Whether Ctrl-C has ended the reading."""
        return self.stop.is_requested


def _select(source: capture_source.Source, *, by_numbers: bool) -> _Selection:
    """Read the capture; `by_numbers`: the filter has numbers that a part has not."""
    ranges, naming, sums = StreamRanges(), StreamRanges(), ExchangeSums()
    definitions, hashes, count = NameDefinitions(), [np.zeros(0, np.uint64)], 0
    for window in source.each_window(gleaning=source.filter is not None):
        table = source.selection.exchange_table(window)
        count += len(table)
        ranges.add(table)
        sums.add(table)
        if by_numbers:
            hashes.append(exchange_hashes(table))
        with using(source.capture.options.schemas):
            definitions.look_up(table)
            naming.add(definitions.find(window.exchanges))
        if source.values is not None:
            ranges.add(registry_exchanges(source.capture, window))
    if definitions.are_needed:
        ranges.extend(naming)
    assert source.capture.reading is not None
    found = np.unique(np.concatenate(hashes)) if by_numbers else None
    return _Selection(source.capture.reading, ranges, sums, found, count)


def _check(source: capture_source.Source, selection: _Selection, flows: FlowFilter) -> _Check:
    """Dissect the packets to be written."""
    source.reports_unreadable = True
    capture, stop = source.capture, source.capture.options.stop
    capture.make_source = lambda: SelectedPackets(
        capture.paths, flows, stop, capture.options.decode_as
    )
    if selection.hashes is not None:
        source.filter = None
    sums = ExchangeSums()
    for window in source.each_window(gleaning=source.filter is not None):
        table = source.selection.exchange_table(window)
        if selection.hashes is not None:
            table = table.rows(np.flatnonzero(np.isin(exchange_hashes(table), selection.hashes)))
        sums.add(table)
    assert capture.reading is not None
    assert isinstance(capture.reading.source, SelectedPackets)
    found = sums.by_endpoints(capture.reading.streams.connections)
    expected = selection.sums.by_endpoints(selection.table)
    different = differing(expected, found, selection.table)
    return _Check(different, capture.reading.source.has_fragments, stop)
