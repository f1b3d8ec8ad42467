"""The files of a collection, in capture order."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from dissector.capture.formats.capture_reader import NOT_A_CAPTURE, read_packets
from dissector.capture.formats.conversions import converted_files
from dissector.capture.formats.pcap import HEADER_BYTES, PcapReader, is_pcap
from dissector.errors import CaptureError, ReadError, UsageError
from pipeline.storage.filesystems import ReadablePrefix, expand_paths, open_file, size_of
from pipeline.storage.stored_file import StoredFile
from pipeline.storage.task_attempts import MAX_ATTEMPTS

_HEAD_BYTES = 1 << 16
"""Bytes read to find the first packet of a file, in most cases."""

_MAGIC_BYTES = 4

_PARALLEL_FILES = 16
"""Files inspected in parallel, because remote ones have latency."""


@dataclass(frozen=True, slots=True)
class File:
    """
    One file.

    Attributes:
        path: The name as given or as found in a folder.
        size: Its stored size in bytes.
        first_ns: Capture time of its first packet; None without one, and for a log.
        divisible: Whether it is an uncompressed pcap file with separately readable ranges.
        problem: Reason why it is unreadable; empty if it is readable.
        is_log: Whether it is a broker's request log.
        position: The byte that is wrong; None without one.
    """

    path: str
    size: int = 0
    first_ns: int | None = None
    divisible: bool = False
    problem: str = ""
    is_log: bool = False
    position: int | None = None

    @property
    def is_capture(self) -> bool:
        """Whether it is not known to be a file of another format."""
        return not self.problem.startswith(NOT_A_CAPTURE)


@dataclass(frozen=True, slots=True)
class Collection:
    """
    Files that are read as one capture.

    Attributes:
        files: In the order of their first packets; files that begin at the same time, and files
            without packets, by path.
    """

    files: tuple[File, ...]

    @classmethod
    def of(cls, paths: Iterable[str]) -> Collection:
        """Return the collection of files for paths, folders and patterns."""
        with ThreadPoolExecutor(_PARALLEL_FILES) as pool:
            return cls.ordered(pool.map(inspect_file, expand_paths(paths)))

    @classmethod
    def ordered(cls, files: Iterable[File]) -> Collection:
        """Return the collection of these files, in order."""
        return cls(tuple(sorted(files, key=_order_key)))


def find_captures(paths: Iterable[str]) -> Collection:
    """
    Return the collection of files for paths.

    Raises:
        UsageError: No file matches the paths.
        CaptureError: None of the files is a capture; names the first, as the other commands do.
    """
    collection = Collection.of(paths)
    if not collection.files:
        raise UsageError("no captures found")
    if all(file.problem for file in collection.files):
        first = collection.files[0]
        raise CaptureError(first.path, first.problem, first.position)
    return collection


def _order_key(file: File) -> tuple[bool, int, str]:
    return file.first_ns is None, file.first_ns or 0, file.path


def inspect_file(path: str, attempts: int = MAX_ATTEMPTS) -> File:
    """Return the properties in the beginning of a file; a failing read is tried this often."""
    try:
        size = size_of(path)
        with open_file(path) as opened:
            divisible = is_pcap(opened.read(_MAGIC_BYTES))
            if not divisible and _is_log(path):
                return File(path, size, is_log=True)
            opened.seek(0)
            # Only the beginning is read: later bytes may be unreadable.
            readable = ReadablePrefix(opened, is_last_try=attempts == 1)
            first_ns = _first_ns(readable)
            if first_ns is None and readable.failure:
                if attempts > 1 or not divisible:
                    raise readable.failure
                first_ns = _first_record_ns(opened)
    except CaptureError as error:
        if isinstance(error, ReadError) and attempts > 1:
            return inspect_file(path, attempts - 1)
        return File(path, problem=error.what, position=error.position)
    return File(path, size, first_ns, divisible)


def _is_log(path: str) -> bool:
    """Return whether a file is a request log, by its first bytes."""
    return bool(converted_files([path], {path: StoredFile(path, path)}))


def _first_ns(file: ReadablePrefix) -> int | None:
    """Return the capture time of the first readable packet."""
    windows = read_packets(
        ["-"],
        window_bytes=_HEAD_BYTES,
        stdin=file,  # type: ignore[arg-type]
    )
    try:
        return next((int(each.time_ns[0]) for each in windows if len(each)), None)
    except CaptureError:
        if file.failure is None:
            raise
        return None


def _first_record_ns(file: BinaryIO) -> int | None:
    """Return the time of a pcap file's first record header, even if its packet is unreadable."""
    file.seek(0)
    reader = PcapReader(file.read(HEADER_BYTES))
    with suppress(ReadError):
        return reader.time_ns(file.read(reader.needed_bytes))
    return None
