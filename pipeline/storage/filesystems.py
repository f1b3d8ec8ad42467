"""Files at local paths and at URIs of Arrow's file systems."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache
from glob import has_magic
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from dissector.errors import CaptureError, ReadError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


_S3A = re.compile("^s3[an]://")

_OPEN_LOCK = Lock()
"""Held while a store is opened, so that each is opened once."""

_DEFAULT_HDFS = "hdfs:///"
"""The cluster that Hadoop's own settings name."""

_MISSING_LIBRARY = re.compile(r"\bload lib(hdfs|jvm)\b")

_LIBRARY_HINT = "; HDFS needs HADOOP_HOME, JAVA_HOME and CLASSPATH, see docs/pipeline.md"

_AHEAD_BYTES = 1 << 14
"""Size of the first read behind the end of a section: a packet is seldom longer."""

MIN_READ_BYTES = 1 << 12
"""Block size of disks: smaller reads are not faster."""

_PERMANENT_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, ValueError)
"""Failures that a retry does not cure."""


def is_uri(path: str) -> bool:
    """Return whether a path names its file system: `s3://bucket/a.pcap`."""
    return "://" in path


def working_folder(path: str) -> str:
    """Return the folder that a relative path begins in; empty for other paths and for URIs."""
    return "" if is_uri(path) or Path(path).is_absolute() else str(Path.cwd())


def absolute(path: str) -> str:
    """Return a path that means the same in every process."""
    return str(Path(path).absolute()) if working_folder(path) else path


def open_file(path: str) -> BinaryIO:
    """
    Open a file for reading, with random access.

    Raises:
        CaptureError: The file can't be opened.
        ReadError: The file can't be opened, but a retry may succeed; also raised from reading.
    """
    with _capture_errors(path):
        if is_uri(path):
            system, inside = locate(path)
            file: Any = system.open_input_file(inside)
        else:
            file = io.FileIO(path)
        return cast(BinaryIO, _CheckedFile(path, file))


class _CheckedFile(io.RawIOBase):
    """A file that raises our errors."""

    def __init__(self, path: str, file: Any) -> None:
        super().__init__()
        self._path = path
        self._file = file

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def seekable(self) -> bool:
        """Return that this has random access."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; return 0 at the end."""
        with _capture_errors(self._path, self.tell()):
            return int(self._file.readinto(buffer))

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte."""
        with _capture_errors(self._path):
            self._file.seek(at, whence)
            return int(self._file.tell())

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return int(self._file.tell())

    def fileno(self) -> int:
        """Return the descriptor of a local file."""
        return int(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


@contextmanager
def _capture_errors(path: str, position: int | None = None) -> Iterator[None]:
    """Convert errors of a file system into CaptureError or ReadError, with the byte."""
    try:
        yield
    except _PERMANENT_ERRORS as error:
        raise CaptureError(path, describe_error(error), position) from None
    except OSError as error:
        raise ReadError(path, describe_error(error), position) from None


def size_of(path: str) -> int:
    """
    Return the size of a file in bytes.

    Raises:
        CaptureError: The file does not exist.
        ReadError: The size can't be determined now.
    """
    with _capture_errors(path):
        if is_uri(path):
            system, inside = locate(path)
            info = system.get_file_info(inside)
            if info.size is None:
                raise FileNotFoundError
            return int(info.size)
        return Path(path).stat().st_size


def expand_paths(paths: Iterable[str]) -> list[str]:
    """
    Return the files for paths, folders and patterns, without duplicates.

    Raises:
        CaptureError: A named path does not exist, or a folder can't be listed.
    """
    files: dict[str, None] = {}
    for path in paths:
        with _capture_errors(path):
            for name in _remote(path) if is_uri(path) else _local(path):
                files.setdefault(name)
    return list(files)


def _local(path: str) -> Iterator[str]:
    if Path(path).is_dir():
        files = (each for each in Path(path).rglob("*") if each.is_file())
        yield from sorted(str(each) for each in files if not _is_hidden(each, Path(path)))
    elif has_magic(path) and not Path(path).exists():
        root = Path(path).anchor
        found = Path(root).glob(path[len(root) :])
        yield from sorted(str(each) for each in found if each.is_file())
    elif Path(path).exists():
        yield path
    else:
        raise FileNotFoundError


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _remote(path: str) -> Iterator[str]:
    from pyarrow import fs

    system, inside = locate(path)
    kind = system.get_file_info(inside).type
    folder = path.rstrip("/")
    while kind == fs.FileType.NotFound and has_magic(folder):
        folder = folder.rpartition("/")[0]
    if folder != path.rstrip("/"):
        system, inside = locate(folder)
        kind = system.get_file_info(inside).type
    if kind == fs.FileType.NotFound:
        raise FileNotFoundError
    if kind != fs.FileType.Directory:
        yield path
        return
    pattern = path[len(folder) :].strip("/")
    files = fs.FileSelector(inside, recursive=True)
    found = [each.path for each in system.get_file_info(files) if each.type == fs.FileType.File]
    for each in sorted(found):
        name = PurePosixPath(each).relative_to(inside)
        hidden = any(part.startswith((".", "_")) for part in name.parts)
        if not hidden and (not pattern or fnmatchcase(str(name), pattern)):
            yield f"{folder}/{name}"


def locate(path: str) -> tuple[FileSystem, str]:
    """
    Return the Arrow file system of a path or URI, and the path inside it.

    `s3a`, Spark's name for S3, is accepted as `s3`. The part after the store's name is taken
    literally, as in Spark: `%20` is not a space.
    """
    from pyarrow import fs

    if not is_uri(path):
        return fs.LocalFileSystem(), str(Path(path).absolute())
    scheme, _, rest = _S3A.sub("s3://", path).partition("://")
    name, _, inside = rest.rstrip("/").partition("/")
    with _OPEN_LOCK:
        system, root = open_store(f"{scheme}://{name}/")
    return system, f"{root.rstrip('/')}/{inside}" if root and inside else root or inside


@cache
def open_store(root: str) -> tuple[FileSystem, str]:
    """
    Open the store of a URI; return the path inside it, too.

    Once per process: it takes a round trip, and files of HDFS close when their store is collected.
    """
    from pyarrow import fs

    if root == _DEFAULT_HDFS:
        return fs.HadoopFileSystem("default"), "/"
    system, inside = fs.FileSystem.from_uri(root)
    return system, str(inside)


def describe_error(error: Exception) -> str:
    """Return one line that describes an error of a file system."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = next(iter(str(error).splitlines()), "can't be opened")
    return text + _LIBRARY_HINT if _MISSING_LIBRARY.search(text) else text


class ReadablePrefix(io.RawIOBase):
    """
    A file that ends at its first unreadable byte.

    Attributes:
        failure: Reason for the early end; None without one.
    """

    def __init__(self, file: BinaryIO, is_last_try: bool) -> None:
        """
        Start at the current position.

        Args:
            file: The file.
            is_last_try: Stores and disks fail a read as a whole. In the last attempt reads are
                therefore made smaller and smaller, to get all bytes before the unreadable place; in
                earlier ones the whole task will be retried.
        """
        super().__init__()
        self._file = file
        self._is_last_try = is_last_try
        self._max_read_bytes: int | None = None
        self.failure: ReadError | None = None

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def seekable(self) -> bool:
        """Return that this has random access."""
        return True

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte."""
        return self._file.seek(at, whence)

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; return 0 at the end."""
        view = memoryview(buffer)
        while self.failure is None:
            part = view[: self._max_read_bytes]
            try:
                return self._file.readinto(part)  # type: ignore[attr-defined, no-any-return]
            except ReadError as error:
                if not self._is_last_try or len(part) <= MIN_READ_BYTES:
                    self.failure = error
                self._max_read_bytes = max(len(part) // 2, MIN_READ_BYTES)
        return 0


class FileSection(io.RawIOBase):
    """A file's header followed by the bytes from some offset on, as if that were the whole file."""

    def __init__(self, path: str, header: bytes, start: int, end: int | None = None) -> None:
        """
        Open the section.

        Args:
            path: The file.
            header: Its header.
            start: The offset.
            end: From this offset on, reads start small and grow: few bytes may be needed, and later
                ones may be unreadable.
        """
        super().__init__()
        self._header = header
        self._file = open_file(path)
        self._file.seek(start)
        self._end = end
        self._ahead = _AHEAD_BYTES

    def readable(self) -> bool:
        """Return that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; return 0 at the end."""
        view = memoryview(buffer)
        if self._header:
            chunk = self._header[: len(view)]
            view[: len(chunk)] = chunk
            self._header = self._header[len(chunk) :]
            return len(chunk)
        return self._file.readinto(view[: self._max_bytes()])  # type: ignore[attr-defined, no-any-return]

    def _max_bytes(self) -> int | None:
        """Return the size limit of the next read; None without one."""
        if self._end is None:
            return None
        remaining = self._end - self._file.tell()
        if remaining > 0:
            return remaining
        self._ahead *= 2
        return self._ahead // 2

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
