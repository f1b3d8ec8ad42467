"""The first stage of reading a capture: capture files to windows of packets."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dissector.capture.columns import Bytes, Packets
from dissector.capture.formats.byte_source import ByteSource, StopSignal
from dissector.capture.formats.conversions import Conversions
from dissector.capture.formats.file_merge import FileMerge
from dissector.capture.formats.file_order import (
    FileBegin,
    TimeCheck,
    in_order,
    repeated_files,
)
from dissector.capture.formats.inputs import Inputs
from dissector.capture.formats.packet_rows import PacketRows
from dissector.capture.formats.pcap import HEADER_BYTES, is_pcap
from dissector.capture.formats.pcapng import MAGIC
from dissector.capture.formats.record_reader import RecordReader, is_capture, reader_of
from dissector.capture.formats.window_buffers import BufferPool
from dissector.errors import CaptureError, Problem

WINDOW_BYTES = 14 << 20
"""
How much of a file is in memory at a time: enough to make the cost per window negligible, and few
enough to fit the processor's caches.
"""

NOT_A_CAPTURE = "not a capture"
"""Beginning of the error of a file of another format."""

_READ_BYTES = 1 << 20
"""Bytes read before they are scanned, while they are in the processor's cache."""

_GROWTH_BYTES = 1 << 16
_SNIFF_BYTES = 32

# Magic bytes of formats often mistaken for captures.
_OTHER_FORMATS = (
    (b"snoop\0\0\0", "snoop file"),
    (b"BZh", "bzip2 file"),
    (b"\xfd7zXZ\0", "xz file"),
    (b"PK\x03\x04", "zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"GMBU", "Microsoft Network Monitor file"),
    (b"RTSS", "Microsoft Network Monitor file"),
    (b"iptrace ", "AIX iptrace file"),
    (b"\x02\x21\x4c\x18", "lz4 file of the legacy format"),
    (b"PAR1", "Parquet file"),
)


def read_packets(
    paths: Sequence[str | Path],
    *,
    window_bytes: int = WINDOW_BYTES,
    first_window_bytes: int | None = None,
    stdin: BinaryIO | None = None,
    stop: StopSignal | None = None,
    every_block: bool = False,
    inputs: Inputs | None = None,
    conversions: Conversions | None = None,
) -> Iterator[Packets]:
    """
    Read capture files as one capture, in time order.

    pcap and pcapng, compressed or not, are recognised by content, whatever their names. Files are
    read in the order of their first packets, and merged by time where they overlap. What can't be
    opened in advance, such as a pipe, keeps its place.

    Args:
        paths: `-` is standard input.
        window_bytes: About how much of a file is in memory at a time. A window ends between two
            packets and at the end of a file, and holds at least one packet.
        first_window_bytes: The same for the first window; by default as for others.
        stdin: Replaces standard input for `-`.
        stop: When requested, the capture ends at the current position.
        every_block: Whether to yield windows of pcapng that have no packets, only other blocks.
        inputs: Streams to read in place of files of some names.
        conversions: Receives the captures that were made of files of other kinds.

    Yields:
        Windows; an empty one only for a problem or TLS secrets, or while a pipe is idle. Behind
        damage reading goes on at the next packet; the lost bytes are reported in `problems`.

    Raises:
        CaptureError: A file can't be opened or is not a capture. Files on disk are checked before
            the first packet of the first one is yielded.
    """
    names = [str(path) for path in paths]
    buffers, file_bytes = BufferPool(), [0] * len(names)
    made = Conversions() if conversions is None else conversions
    inputs = made.inputs((name for name in names if _is_seen_before(name, inputs)), inputs)
    groups = _groups(names, inputs)
    sizes = chain((first_window_bytes or window_bytes,), repeat(window_bytes))

    # Without a reference of its own to the merge: that cycle would keep the memory of windows.
    def windows_of(number: int, merge: FileMerge) -> Generator[Packets, None, None]:
        if number != first_number and stop is not None and stop.is_requested:
            return
        with closing(ByteSource(names[number], stdin, stop, inputs)) as source:
            shares = (merge.window_bytes(size) for size in sizes)
            for packets in _windows(source, number, 0, shares, buffers, made):
                file_bytes[number] = source.file_bytes
                yield packets
                del packets

    first, first_number = 0, groups[0][0].number if groups else 0
    repeated, check = repeated_files(names) if len(names) > 1 else [], TimeCheck(names)
    for group in groups:
        merge = FileMerge(group, windows_of)
        for packets in merge.windows():
            packets.first = first
            first += len(packets)
            packets.file_bytes = sum(file_bytes)
            if len(names) > 1:
                packets.problems = [*repeated, *check.problems(packets), *packets.problems]
                repeated = []
            packets.problems = [*made.take_problems(), *packets.problems]
            has_news = len(packets) or packets.problems or packets.tls_secrets
            if has_news or packets.is_live or every_block:
                yield packets
            del packets


def _groups(names: Sequence[str], inputs: Inputs | None) -> list[list[FileBegin]]:
    """Return the files in the order of reading; see `in_order`."""
    if len(names) == 1:
        return [[FileBegin(0, None)]]
    return list(
        in_order(
            names,
            lambda name: _is_seen_before(name, inputs),
            lambda name: _first_time(name, inputs),
        )
    )


def _is_appended(name: str, inputs: Inputs | None) -> bool:
    return bool(inputs and name in inputs and inputs[name].is_appended)


def _is_seen_before(name: str, inputs: Inputs | None) -> bool:
    """Return whether a file can be looked at before it is read."""
    return is_rereadable(name, inputs) and not _is_appended(name, inputs)


def _first_time(name: str, inputs: Inputs | None) -> int | None:
    """
    Return the time of the first packet of a file; None without one.

    Raises:
        CaptureError: It can't be opened, or is not a capture.
    """
    with closing(ByteSource(name, inputs=inputs)) as source:
        windows = _windows(source, 0, 0, repeat(_GROWTH_BYTES), BufferPool())
        return next((int(each.time_ns[0]) for each in windows if len(each)), None)


def read_tls_secrets(paths: Sequence[str | Path], inputs: Inputs | None = None) -> Iterator[bytes]:
    """
    Yield the TLS key logs in pcapng files, at any position.

    A separate pass over the files, for connections before their secrets; standard input and pipes,
    which can be read once only, are left out.
    """
    for path in map(str, paths):
        if is_rereadable(path, inputs) and _is_pcapng(path, inputs):
            for packets in read_packets([path], inputs=inputs):
                yield from packets.tls_secrets


def is_file(name: str) -> bool:
    """Return whether a capture is a file on disk, which can be read repeatedly."""
    return name != "-" and Path(name).is_file()


def is_rereadable(name: str, inputs: Inputs | None = None) -> bool:
    """Return whether a capture can be read more than once, or does not exist."""
    if inputs and name in inputs:
        return inputs[name].is_rereadable
    return name != "-" and (is_file(name) or not Path(name).exists())


def _is_pcapng(name: str, inputs: Inputs | None) -> bool:
    source = ByteSource(name, inputs=inputs)
    try:
        return _read_head(source).startswith(MAGIC)
    finally:
        source.close()


def read_file_head(name: str, inputs: Inputs | None = None) -> bytes:
    """Return the first bytes of a capture, decompressed: by default the format's."""
    source = ByteSource(name, inputs=Conversions().inputs([name], inputs))
    try:
        return _read_head(source)
    finally:
        source.close()


def _read_head(source: ByteSource) -> bytes:
    head: Bytes = np.empty(_SNIFF_BYTES, dtype=np.uint8)
    filled = 0
    while filled < len(head) and not source.ended:
        filled += source.fill(head[filled:])
    return head[:filled].tobytes()


def _detect_format(source: ByteSource, head: bytes) -> tuple[RecordReader, int]:
    """Return the reader of a file that starts with `head`, and the number of consumed bytes."""
    if is_pcap(head) and len(head) < HEADER_BYTES:
        raise CaptureError(source.name, "pcap file cut off in its header", len(head))
    found = reader_of(head)
    if found is not None:
        return RecordReader(found[0]), found[1]
    description = _describe_content(head)
    if source.compression is not None:
        description = f"{description} inside {source.compression}"
    if source.problem is not None:
        description = f"{description}, and {source.problem.what}"
    raise CaptureError(source.name, f"{NOT_A_CAPTURE}: {description}")


def _describe_content(head: bytes) -> str:
    """Return a short description of a file that starts with `head`."""
    if not head:
        return "empty file"
    for magic, description in _OTHER_FORMATS:
        if head.startswith(magic):
            return description
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The sniffed bytes may end inside a character.
        text = head[: error.start].decode() if error.start > len(head) - 4 else "\0"
    if text and all(char.isprintable() or char.isspace() for char in text):
        return "text"
    return f"begins with bytes {head[:8].hex(' ')}"


def _windows(
    source: ByteSource,
    number: int,
    first: int,
    sizes: Iterator[int],
    buffers: BufferPool,
    conversions: Conversions | None = None,
) -> Iterator[Packets]:
    """
    Yield the windows of one file.

    None is referenced while the next is read, so that its memory returns to the pool.
    """
    carry = _read_head(source)
    if source.stopped:
        return  # A stopped capture may be read again, for names that are defined later.
    if conversions is not None and carry and not is_capture(carry):
        made = conversions.of_stream(source, carry)
        if made is not None:
            with closing(ByteSource(source.name, inputs={source.name: made})) as other:
                yield from _windows(other, number, first, sizes, buffers)
            if source.is_live:  # with the problems of the last lines
                yield _packets(
                    np.zeros(0, np.uint8), first, PacketRows(buffers), number, source.name
                )
            return
    reader, read = _detect_format(source, carry)
    carry = carry[read:]
    base = read
    rows = PacketRows(buffers)
    is_done = False
    while not is_done:
        window = _allocate_window(carry, reader.needed_bytes, next(sizes), buffers)
        filled, used = _fill(window, len(carry), source, reader, base, rows)
        is_done = source.ended
        if is_done:
            used = _finish(window[:filled], used, source, reader, base, rows)
        carry = window[used:filled].tobytes()
        base += used
        is_idle = source.is_live and not source.ended and filled == used
        if used or rows.problems or is_idle:
            packets = _packets(window[:filled], first, rows, number, source.name)
            packets.path_index, packets.base = number, base - used
            packets.is_live = source.is_live and not source.ended
            yield packets
            first += rows.count
            del packets
        del window


def _allocate_window(carry: bytes, need: int, window_bytes: int, buffers: BufferPool) -> Bytes:
    """
    Return memory for a window that starts with the bytes left over.

    A claimed length is trusted only a little beyond the received bytes.
    """
    trusted = min(need, 2 * len(carry) + _GROWTH_BYTES)
    window: Bytes = buffers.acquire("u1", max(window_bytes, trusted, len(carry)))
    window[: len(carry)] = np.frombuffer(carry, dtype=np.uint8)
    return window


def _fill(
    window: Bytes,
    filled: int,
    source: ByteSource,
    reader: RecordReader,
    base: int,
    rows: PacketRows,
) -> tuple[int, int]:
    """
    Read into the window behind its contents, and scan each block.

    Returns:
        End of the filled part, and end of its complete records.
    """
    end = min(filled + _READ_BYTES, len(window))
    filled += source.fill(window[filled:end])
    rows.start_window(len(window) if filled == end else filled)
    used = reader.scan(window[:filled], 0, base, rows)
    while filled == end < len(window):
        end = min(filled + _READ_BYTES, len(window))
        filled += source.fill(window[filled:end], has_data=True)
        used = reader.scan(window[:filled], used, base, rows)
    return filled, used


def _finish(
    window: Bytes, used: int, source: ByteSource, reader: RecordReader, base: int, rows: PacketRows
) -> int:
    """Read what is left at the end of the file; return the end of what is read or reported."""
    if source.stopped:
        return used
    if source.problem is not None:
        rows.problems.append(Problem(source.problem.what, position=source.position))
    used = reader.scan(window, used, base, rows, is_last=True)
    rows.report_more_lost()
    return used


def _packets(window: Bytes, first: int, rows: PacketRows, number: int, name: str) -> Packets:
    columns: dict[str, Any] = rows.columns._asdict()
    count = rows.count
    return Packets(
        data=window,
        first=first,
        **{name: column[:count] for name, column in columns.items()},
        file=np.full(count, number, dtype=np.int32),
        problems=[(name, each) for each in rows.problems],
        tls_secrets=rows.tls_secrets,
        spans=rows.spans,
        break_position=rows.break_position,
    )
