"""Files wherever they lie: paths of this machine, and URIs of the file systems that Arrow knows."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from dissector.errors import CaptureError, ReadError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


_S3A = re.compile("^s3[an]://")


_AHEAD_BYTES = 1 << 14
"""How much is asked for behind the end of a section first: a packet is seldom longer."""

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
            system, inside = located(path)
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
        raise CaptureError(path, _reason(error), position) from None
    except OSError as error:
        raise ReadError(path, _reason(error), position) from None


def size_of(path: str) -> int:
    """
    Return how many bytes a file has.

    Raises:
        CaptureError: There is no such file.
        ReadError: It can't be known now.
    """
    with _told(path):
        if is_uri(path):
            system, inside = located(path)
            info = system.get_file_info(inside)
            if info.size is None:
                raise FileNotFoundError
            return int(info.size)
        return Path(path).stat().st_size


def expanded(paths: Iterable[str]) -> list[str]:
    """Return the files that paths, folders and patterns stand for, each once."""
    found: dict[str, None] = {}
    for path in paths:
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
    else:
        yield path


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _remote(path: str) -> Iterator[str]:
    from pyarrow import fs

    folder = path
    while has_magic(folder):
        folder = folder.rpartition("/")[0]
    system, inside = located(folder)
    if system.get_file_info(inside).type != fs.FileType.Directory:
        yield path
        return
    pattern = inside + path[len(folder) :]
    # What is before the path inside: not only the scheme, in a cluster of HDFS also its name.
    begin = folder.rstrip("/").removesuffix(inside.rstrip("/"))
    for info in sorted(system.get_file_info(fs.FileSelector(inside, recursive=True)), key=_path):
        name = PurePosixPath(info.path)
        hidden = any(part.startswith((".", "_")) for part in name.relative_to(inside).parts)
        chosen = folder == path or fnmatchcase(info.path, pattern)
        if info.type == fs.FileType.File and not hidden and chosen:
            yield f"{begin}{info.path}"


def _path(info: Any) -> str:
    return str(info.path)


def located(path: str) -> tuple[FileSystem, str]:
    """
    Return the file system of a path or URI, as Arrow has it, and the path inside it.

    `s3a` is what Spark calls S3, and needs no name of its own here.
    """
    from pyarrow import fs

    uri = path if is_uri(path) else Path(path).absolute().as_uri()
    system, inside = fs.FileSystem.from_uri(_S3A.sub("s3://", uri))
    return system, str(inside)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error).splitlines()[0] if str(error) else "can't be opened"


class Readable(io.RawIOBase):
    """
    A file that ends where it can't be read.

    Attributes:
        failed: Why it ended; None: it is whole.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.failed: ReadError | None = None

    def readable(self) -> bool:
        """Say that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, at least one; 0 at the end."""
        if self.failed is None:
            try:
                return self._file.readinto(buffer)  # type: ignore[attr-defined, no-any-return]
            except ReadError as error:
                self.failed = error
        return 0


class Section(io.RawIOBase):
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
