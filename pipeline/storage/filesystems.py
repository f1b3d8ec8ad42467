"""Files wherever they lie: paths of this machine, and URIs of the file systems that Arrow knows."""

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

_OPENING = Lock()
"""Held while a store is opened, so that each is opened once."""

_HOME = "hdfs:///"
"""The cluster that Hadoop's own settings name."""

_NO_LIBRARY = re.compile(r"\bload lib(hdfs|jvm)\b")

_LIBRARY = "; HDFS needs HADOOP_HOME, JAVA_HOME and CLASSPATH, see docs/pipeline.md"

_AHEAD_BYTES = 1 << 14
"""How much is asked for behind the end of a section first: a packet is seldom longer."""

MIN_READ_BYTES = 1 << 12
"""Disks have no smaller pieces."""

_FOR_GOOD = (FileNotFoundError, PermissionError, IsADirectoryError, ValueError)
"""Failures that stay as long as nobody does anything about them."""


def is_uri(path: str) -> bool:
    """Tell whether a path names its file system: `s3://bucket/a.pcap`."""
    return "://" in path


def open_file(path: str) -> BinaryIO:
    """
    Open a file to read it; it can be read from any byte on.

    Raises:
        CaptureError: It can't be opened.
        ReadError: It can't be now, but perhaps when it is tried again; also from reading.
    """
    with _told(path):
        if is_uri(path):
            system, inside = locate(path)
            file: Any = system.open_input_file(inside)
        else:
            file = io.FileIO(path)
        return cast(BinaryIO, _File(path, file))


class _File(io.RawIOBase):
    """A file whose failures are ours."""

    def __init__(self, path: str, file: Any) -> None:
        super().__init__()
        self._path = path
        self._file = file

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def seekable(self) -> bool:
        """Say that this can be read from any byte on."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; 0 at the end."""
        with _told(self._path, self.tell()):
            return int(self._file.readinto(buffer))

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        """Go on from a byte."""
        with _told(self._path):
            self._file.seek(at, whence)
            return int(self._file.tell())

    def tell(self) -> int:
        """Return the byte that is next."""
        return int(self._file.tell())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


@contextmanager
def _told(path: str, position: int | None = None) -> Iterator[None]:
    """Turn what a file system raises into errors of ours, which tell the byte."""
    try:
        yield
    except _FOR_GOOD as error:
        raise CaptureError(path, describe_error(error), position) from None
    except OSError as error:
        raise ReadError(path, describe_error(error), position) from None


def size_of(path: str) -> int:
    """
    Return how many bytes a file has.

    Raises:
        CaptureError: There is no such file.
        ReadError: It can't be known now.
    """
    with _told(path):
        if is_uri(path):
            system, inside = locate(path)
            info = system.get_file_info(inside)
            if info.size is None:
                raise FileNotFoundError
            return int(info.size)
        return Path(path).stat().st_size


def expand_paths(paths: Iterable[str]) -> list[str]:
    """
    Return the files that paths, folders and patterns stand for, each once.

    Raises:
        CaptureError: What is named is not there, or can't be looked into.
    """
    found: dict[str, None] = {}
    for path in paths:
        with _told(path):
            for name in _remote(path) if is_uri(path) else _local(path):
                found.setdefault(name)
    return list(found)


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
    Return the file system of a path or URI, as Arrow has it, and the path inside it.

    `s3a` is what Spark calls S3, and needs no name of its own here. What stands behind the name of
    the store is taken as it is, as Spark takes it: `%20` is no space.
    """
    from pyarrow import fs

    if not is_uri(path):
        return fs.LocalFileSystem(), str(Path(path).absolute())
    scheme, _, rest = _S3A.sub("s3://", path).partition("://")
    name, _, inside = rest.rstrip("/").partition("/")
    with _OPENING:
        system, root = open_store(f"{scheme}://{name}/")
    return system, f"{root.rstrip('/')}/{inside}" if root and inside else root or inside


@cache
def open_store(root: str) -> tuple[FileSystem, str]:
    """
    Open the store of a URI; return the path inside it, too.

    Once in a process: it takes a round trip, and where that of HDFS is forgotten its files close.
    """
    from pyarrow import fs

    if root == _HOME:
        return fs.HadoopFileSystem("default"), "/"
    system, inside = fs.FileSystem.from_uri(root)
    return system, str(inside)


def describe_error(error: Exception) -> str:
    """Say in one line what a file system has raised."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = next(iter(str(error).splitlines()), "can't be opened")
    return text + _LIBRARY if _NO_LIBRARY.search(text) else text


class ReadablePrefix(io.RawIOBase):
    """
    A file that ends where it can't be read.

    Attributes:
        failure: Why it ended; None: it is whole.
    """

    def __init__(self, file: BinaryIO, is_last_try: bool) -> None:
        """
        Begin.

        Args:
            file: The file.
            is_last_try: What is asked for together fails together, as stores and disks have it. So
                less and less is asked for, up to the place: where nobody tries all of it again.
        """
        super().__init__()
        self._file = file
        self._is_last_try = is_last_try
        self._most: int | None = None
        self.failure: ReadError | None = None

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def seekable(self) -> bool:
        """Say that this can be read from any byte on."""
        return True

    def seek(self, at: int, whence: int = io.SEEK_SET) -> int:
        """Go on from a byte."""
        return self._file.seek(at, whence)

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; 0 at the end."""
        view = memoryview(buffer)
        while self.failure is None:
            part = view[: self._most]
            try:
                return self._file.readinto(part)  # type: ignore[attr-defined, no-any-return]
            except ReadError as error:
                if not self._is_last_try or len(part) <= MIN_READ_BYTES:
                    self.failure = error
                self._most = max(len(part) // 2, MIN_READ_BYTES)
        return 0


class FileSection(io.RawIOBase):
    """A file's header, and what follows some byte of it, as if that were all."""

    def __init__(self, path: str, header: bytes, start: int, end: int | None = None) -> None:
        """
        Begin.

        Args:
            path: The file.
            header: Its header.
            start: The byte.
            end: Behind this byte no more is asked for at a time than may be wanted, little and
                then more: what is there may be unreadable.
        """
        super().__init__()
        self._header = header
        self._file = open_file(path)
        self._file.seek(start)
        self._end = end
        self._ahead = _AHEAD_BYTES

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; 0 at the end."""
        view = memoryview(buffer)
        if self._header:
            taken = self._header[: len(view)]
            view[: len(taken)] = taken
            self._header = self._header[len(taken) :]
            return len(taken)
        return self._file.readinto(view[: self._asked()])  # type: ignore[attr-defined, no-any-return]

    def _asked(self) -> int | None:
        """Return how many bytes are asked for at most; None: as many as are wanted."""
        if self._end is None:
            return None
        before = self._end - self._file.tell()
        if before > 0:
            return before
        self._ahead *= 2
        return self._ahead // 2

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
