"""The files of a collection, in the order in which they are one capture."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.formats.pcap import HEADER_BYTES, PcapReader, is_pcap
from dissector.errors import CaptureError, ReadError, UsageError
from pipeline.storage.filesystems import ReadablePrefix, expand_paths, open_file, size_of
from pipeline.storage.task_attempts import MAX_ATTEMPTS

_LOOK_BYTES = 1 << 16
"""How much of a file is looked at for its first packet, as a rule."""

_MAGIC_BYTES = 4

_AT_A_TIME = 16
"""Files looked at side by side: those of other machines are waited for."""


@dataclass(frozen=True, slots=True)
class File:
    """
    One file.

    Attributes:
        path: As it was named or found.
        size: Its bytes, as it lies.
        first_ns: When its first packet was captured; None where it has none.
        divisible: Whether it is a pcap file that is not compressed: its parts can be read alone.
        problem: Why it can't be read at all; empty where it can.
    """

    path: str
    size: int = 0
    first_ns: int | None = None
    divisible: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """
    Files that are read as one capture.

    Attributes:
        files: In the order of their first packets; those that begin together, and those without
            packets, by their paths.
    """

    files: tuple[File, ...]

    @classmethod
    def of(cls, paths: Iterable[str]) -> Collection:
        """Return the collection of what paths, folders and patterns stand for."""
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            return cls.ordered(pool.map(inspect_file, expand_paths(paths)))

    @classmethod
    def ordered(cls, files: Iterable[File]) -> Collection:
        """Put files in order."""
        return cls(tuple(sorted(files, key=_place)))


def find_captures(paths: Iterable[str]) -> Collection:
    """
    Return the collection of what paths stand for, if anything of it can be read.

    Raises:
        UsageError: Paths stand for no file.
        CaptureError: There is not one capture; tells the first file, as the other commands do.
    """
    collection = Collection.of(paths)
    if not collection.files:
        raise UsageError("there are no captures")
    if all(file.problem for file in collection.files):
        first = collection.files[0]
        raise CaptureError(first.path, first.problem)
    return collection


def _place(file: File) -> tuple[bool, int, str]:
    return file.first_ns is None, file.first_ns or 0, file.path


def inspect_file(path: str, tries: int = MAX_ATTEMPTS) -> File:
    """Return what the beginning of a file tells; what fails is tried so often."""
    try:
        size = size_of(path)
        with open_file(path) as opened:
            divisible = is_pcap(opened.read(_MAGIC_BYTES))
            opened.seek(0)
            # Only what it begins with is asked for: behind it there may be what can't be read.
            readable = ReadablePrefix(opened, is_last_try=tries == 1)
            first_ns = _first_ns(readable)
            if first_ns is None and readable.failure:
                if tries > 1 or not divisible:
                    raise readable.failure
                first_ns = _claimed_ns(opened)
    except CaptureError as error:
        if isinstance(error, ReadError) and tries > 1:
            return inspect_file(path, tries - 1)
        return File(path, problem=error.what)
    return File(path, size, first_ns, divisible)


def _first_ns(file: ReadablePrefix) -> int | None:
    """Return when the first packet was captured that can be read."""
    windows = read_packets(["-"], window_bytes=_LOOK_BYTES, stdin=file)  # type: ignore[arg-type]
    try:
        return next((int(each.time_ns[0]) for each in windows if len(each)), None)
    except CaptureError:
        if file.failure is None:
            raise
        return None


def _claimed_ns(file: BinaryIO) -> int | None:
    """Return the time in the header of a pcap file's first packet, which itself can't be read."""
    file.seek(0)
    reader = PcapReader(file.read(HEADER_BYTES))
    with suppress(ReadError):
        return reader.time_ns(file.read(reader.needed_bytes))
    return None
