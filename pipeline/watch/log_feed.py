"""
Request logs of a watched folder: each goes on where the logs before it ended.

A log that was read while it grew comes again under the name of a rotated file. It is known by its
first bytes, and only what is new in it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.packets.layers import Layers
from dissector.errors import Problem
from dissector.request_log.converted_log import ConvertedLog
from dissector.request_log.log_accounts import LogAccounts
from dissector.request_log.log_packets import LogConnections
from pipeline.split.shards import SCHEMA, pack_shard

_HEAD_BYTES = 4096
"""First bytes by which a log is known; of a shorter one all."""

_MOST_TAILS = 1000
"""Logs that are known again."""


class _Tail(NamedTuple):
    """How far a log was read: the size and the hash of its head, and its bytes and lines so far."""

    head_bytes: int
    digest: bytes
    bytes: int
    lines: int


@dataclass(slots=True)
class Logged:
    """What a broker says of the exchanges of a log; a `LoggedFile`."""

    accounts: LogAccounts


@dataclass(slots=True)
class LogFeed:
    """
    Makes segments of logs, one after the other.

    Attributes:
        logs: What brokers say, by the names of files.
    """

    logs: dict[str, Logged] = field(default_factory=dict)
    _connections: LogConnections = field(default_factory=LogConnections)
    _tails: list[_Tail] = field(default_factory=list)
    _problems: list[tuple[str, Problem]] = field(default_factory=list)

    def shards(
        self, path: str, texts: Iterable[pa.RecordBatch], logs: dict[str, Logged], zone: str
    ) -> Iterator[pa.RecordBatch]:
        """
        Yield the shards of a log, whose packets are counted from 0.

        Args:
            path: The name of the log.
            texts: Its text, as `text_shard` packed it.
            logs: Receives what the broker says, before the first shard.
            zone: Zone of times without one.
        """
        blocks = (shard.column("payload")[0].as_py() for shard in texts)
        first = next(blocks, b"")
        tail = self._take_tail(first)
        every = _Counted(chain([first], blocks), tail.bytes)
        converted = ConvertedLog(every, self._connections, zone, lines_before=tail.lines)
        head = first[:_HEAD_BYTES]
        after = _Tail(len(head), _digest(head), every.bytes, converted.lines)
        self._tails = [*self._tails[1 - _MOST_TAILS :], after]
        logs[path] = Logged(converted.accounts)
        self._problems += [(path, each) for each in converted.problems]
        layers = Layers()
        for window in read_packets(["-"], stdin=converted.open()):  # type: ignore[arg-type]
            segments = layers.segments(window)
            if len(segments):
                yield pack_shard(segments, layers.networks)
            del window, segments

    def take_problems(self) -> list[tuple[str, Problem]]:
        """Return what is wrong with the lines since the last call, with the names of files."""
        problems, self._problems = self._problems, []
        return problems

    def forget(self, before_ns: int) -> None:
        """End connections without an exchange since a time."""
        self._connections.forget(before_ns)

    def _take_tail(self, first: bytes) -> _Tail:
        """Return how far a log was read before, and forget it."""
        for at, tail in enumerate(self._tails):
            head = first[: tail.head_bytes]
            if len(head) == tail.head_bytes and _digest(head) == tail.digest:
                return self._tails.pop(at)
        return _Tail(0, b"", 0, 0)


class _Counted:
    """Blocks of bytes without the first bytes of them all; counts all."""

    def __init__(self, blocks: Iterable[bytes], left_out: int) -> None:
        self._blocks = blocks
        self._left_out = left_out
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            begin = max(0, self._left_out - self.bytes)
            self.bytes += len(block)
            if begin < len(block):
                yield block[begin:]


def text_shard(part: int, number: int, text: bytes) -> pa.RecordBatch:
    """Return a piece of a log as a shard without segments."""
    row = {"part": part, "range": 0, "number": number, "networks": [], "files": []}
    blobs = {"ends": b"", "rows": b"", "payload": text, "of_file": b""}
    return pa.RecordBatch.from_pylist([row | blobs], schema=SCHEMA)


def is_text(shard: pa.RecordBatch) -> bool:
    """Return whether a shard is a piece of a log."""
    return not len(shard.column("rows")[0].as_buffer())


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield blocks that end with a line; a last line without end may still grow."""
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = b""
        rest += block[end:]


def _digest(head: bytes) -> bytes:
    return blake2b(head, digest_size=16).digest()
