"""
Files that another room makes captures of: request logs.

This room knows no protocol, so the other one registers here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from dissector.capture.columns import Bytes
from dissector.capture.formats.byte_source import ByteSource
from dissector.capture.formats.inputs import Input, Inputs
from dissector.errors import Problem

Blocks: TypeAlias = Iterator[bytes]
"""The bytes of a file, block by block."""

BLOCK_BYTES = 1 << 20
"""Size of the blocks, but for the last, and for those before a pause of a pipe."""

_TEXT_BYTES = 64
_KEPT = 4
"""Sets of files whose captures are kept, to be read again."""


class Converted(Input, Protocol):
    """
    A file as a capture.

    Attributes:
        problems: What is wrong with the file.
    """

    problems: list[Problem]


class Growing(Converted, Protocol):
    """A file that still grows, as a capture."""

    def take_problems(self) -> list[Problem]:
        """Return what is wrong with the file since the last call."""


class Converter(Protocol):
    """Makes captures of files of another kind."""

    def is_known(self, begin: bytes) -> bool:
        """Return whether a file is of this kind, by its first bytes."""

    def key(self) -> object:
        """Return further settings on which the captures depend."""

    def convert(self, files: Sequence[Callable[[], Blocks]], timezone: str) -> Sequence[Converted]:
        """Return the captures of the files of one capture, in the same order."""

    def follow(self, blocks: Blocks, timezone: str) -> Growing:
        """Return the capture of a file that grows; blocks are empty where nothing comes."""


_converters: list[Converter] = []
_kept: OrderedDict[object, dict[str, Converted]] = OrderedDict()


def register(converter: Converter) -> None:
    """Use a converter from now on."""
    _converters.append(converter)


class Conversions:
    """
    The converted files of one capture.

    Args:
        timezone: Zone of times without one.

    Attributes:
        found: The captures by the names of their files.
    """

    def __init__(self, timezone: str = "UTC") -> None:
        self.found: dict[str, Converted] = {}
        self._timezone = timezone
        self._unreported: list[tuple[str, Problem]] = []
        self._growing: dict[str, Growing] = {}

    def inputs(self, names: Iterable[str], inputs: Inputs | None) -> Inputs | None:
        """
        Return the inputs of a capture, with those of converted files.

        Args:
            names: The files that can be read more than once.
            inputs: Streams to read in place of files of some names.

        Raises:
            CaptureError: A file can't be opened.
        """
        for converter in _converters:
            chosen = [name for name in dict.fromkeys(names) if _is_known(converter, name, inputs)]
            if chosen:
                self._add(_converted(converter, chosen, inputs, self._timezone))
        return {**(inputs or {}), **self.found} if self.found else inputs

    def of_stream(self, source: ByteSource, head: bytes) -> Converted | None:
        """Return the capture of a file that is read once only; None if it is of no such kind."""
        for converter in _converters:
            if source.is_live:
                begin = _live_begin(source, head, converter)
                if converter.is_known(begin):
                    grown = converter.follow(_joined(begin, _live_blocks(source)), self._timezone)
                    self._growing[source.name] = grown
                    self._add({source.name: grown})
                    return grown
                continue
            begin = head + next(_blocks(source), b"")
            if converter.is_known(begin):
                blocks = partial(_joined, begin, _blocks(source))
                found = converter.convert([blocks], self._timezone)[0]
                self._add({source.name: found})
                return found
        return None

    def take_problems(self) -> list[tuple[str, Problem]]:
        """Return the problems that were not returned yet, with the names of their files."""
        problems, self._unreported = self._unreported, []
        for name, growing in self._growing.items():
            problems += [(name, each) for each in growing.take_problems()]
        return problems

    def _add(self, found: dict[str, Converted]) -> None:
        self.found |= found
        self._unreported += [(name, each) for name in found for each in found[name].problems]


def converted_files(names: Iterable[str], inputs: Inputs | None) -> set[str]:
    """
    Return the names of files that are converted.

    Raises:
        CaptureError: A file can't be opened.
    """
    every = list(names)
    return {
        name for converter in _converters for name in every if _is_known(converter, name, inputs)
    }


def blocks_of(name: str, inputs: Inputs | None) -> Blocks:
    """Yield the decompressed bytes of a file, block by block."""
    with closing(ByteSource(name, inputs=inputs)) as source:
        yield from _blocks(source)


def _converted(
    converter: Converter, names: Sequence[str], inputs: Inputs | None, timezone: str
) -> dict[str, Converted]:
    """Return the captures of files; those of unchanged ones on disk are made once."""
    identities = [_identity(name, inputs) for name in names]
    key = (converter.key(), timezone, *identities)
    if key in _kept:
        _kept.move_to_end(key)
        return _kept[key]
    found = converter.convert([partial(blocks_of, name, inputs) for name in names], timezone)
    by_name = dict(zip(names, found, strict=True))
    if None not in identities:
        _kept[key] = by_name
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return by_name


def _identity(name: str, inputs: Inputs | None) -> object:
    if inputs and name in inputs:
        return None
    status = Path(name).stat()
    return name, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _is_known(converter: Converter, name: str, inputs: Inputs | None) -> bool:
    with closing(ByteSource(name, inputs=inputs)) as source:
        blocks = _blocks(source, _TEXT_BYTES)
        head = next(blocks, b"")
        return _is_text(head) and converter.is_known(head + next(_blocks(source), b""))


def _is_text(head: bytes) -> bool:
    """Return whether a file may be text: no control characters, as captures have some."""
    return bool(head) and not any(byte < 32 and byte not in b"\t\n\r\x1b" for byte in head)


def _blocks(source: ByteSource, size: int = BLOCK_BYTES) -> Blocks:
    buffer: Bytes = np.empty(size, np.uint8)
    while not source.ended:
        filled = source.fill(buffer)
        if filled:
            yield buffer[:filled].tobytes()


def _live_begin(source: ByteSource, head: bytes, converter: Converter) -> bytes:
    """Return the first bytes of a pipe, as many as the converter needs to know it."""
    begin, blocks = head, _live_blocks(source)
    while _is_text(head) and len(begin) < BLOCK_BYTES and not converter.is_known(begin):
        block = next(blocks, None)
        if block is None:
            break
        begin += block
    return begin


def _live_blocks(source: ByteSource) -> Blocks:
    """Yield the bytes of a pipe as they come; an empty block where none have come for a while."""
    buffer: Bytes = np.empty(BLOCK_BYTES, np.uint8)
    while not source.ended:
        yield buffer[: source.fill(buffer)].tobytes()


def _joined(begin: bytes, more: Blocks) -> Blocks:
    yield begin
    yield from more
