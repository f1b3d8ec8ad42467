"""
The files that a command reads and writes: no output may overwrite an input, or another output.

Outputs have their names when they are complete (`written_when_complete`).

An option that names a path has its role in its annotation: `Annotated[str, Option(...), READS]`.
Files are compared by device and inode, so links and `/dev/stdin` are seen through; new files by
their folder and name. Pipes, devices and terminals may be named twice.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dissector.errors import UsageError

STANDARD_STREAM = "-"


@dataclass(frozen=True, slots=True)
class Reads:
    """
    The option names files to read, or folders and patterns of them.

    Attributes:
        folder_files: Patterns of the files that are read in a folder; empty: no folder is read.
        variable: Environment variable with the paths if the option is not given.
        path_in: Returns the path in the text of the option, empty without one; None: it is one.
        with_file: Returns the files that are read with one; None: no others.
    """

    folder_files: tuple[str, ...] = ()
    variable: str = ""
    path_in: Callable[[str], str] | None = None
    with_file: Callable[[str], Iterable[str]] | None = None


@dataclass(frozen=True, slots=True)
class Writes:
    """
    The option names a file to write, or a folder.

    Attributes:
        in_folder: Of a folder, a regular expression for the names that are written or removed in
            it; None for a file.
    """

    in_folder: str | None = None


READS, WRITES = Reads(), Writes()


class NamedPath(NamedTuple):
    """A path as given, with the option that names it."""

    path: str
    option: str
    role: Reads | Writes


class _OutputFile(io.FileIO):
    """A file whose name is in errors of its writes too: the system's has none for a full disk."""

    shown_name = ""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = self.shown_name
            raise


def open_output(path: Path, mode: str = "wb", shown: Path | None = None) -> BinaryIO:
    """
    Open a file for bytes; errors name it, or `shown`.

    Raises:
        OSError: It can't be opened. What is returned raises such errors when it can't be written.
    """
    file = _OutputFile(path, mode)
    file.shown_name = str(shown or path)
    return io.BufferedWriter(file)


@contextmanager
def written_when_complete(
    path: Path, watch: Callable[[Path], AbstractContextManager[object]] = nullcontext
) -> Iterator[BinaryIO]:
    """
    Open a file to write, which gets its name, and replaces an older one, when it is complete.

    Args:
        path: The file.
        watch: Is entered with the name of the unfinished file while it exists.
    """
    import secrets  # slow to import

    # Others may write to the folder too: no link with a name that they guess is followed.
    target = path.resolve()
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    with watch(part):
        try:
            try:
                file = open_output(part, "xb", path)
            except OSError as error:
                error.filename = str(path)
                raise
            with file:
                if target.exists():
                    part.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def check_outputs(paths: Sequence[NamedPath]) -> None:
    """
    Check that no path to write is one to read, or written twice.

    Raises:
        UsageError: One is; the message names the path and both options.
    """
    outputs = [
        each
        for each in paths
        if isinstance(each.role, Writes) and each.path != STANDARD_STREAM and _is_local(each.path)
    ]
    has_stdout_file = (stdout := _stream_identity(sys.stdout)) is not None
    if not outputs and not has_stdout_file:
        return
    read = {
        _identity(file): NamedPath(file, each.option, each.role)
        for each in paths
        if isinstance(each.role, Reads) and _is_local(each.path)
        for file in _files_of(each.path, each.role)
    }
    read.pop(None, None)
    if stdout in read:
        found = read[stdout]
        raise UsageError(
            f"{found.path} is read ({found.option}), and standard output is written to it"
        )
    written: dict[Hashable, NamedPath] = {}
    for each in outputs:
        assert isinstance(each.role, Writes)
        identities = [_identity(each.path)]
        if each.role.in_folder is not None:
            _check_folder(each, each.role.in_folder, read.values())
            identities += map(_identity, _entries(each.path, each.role.in_folder))
        for identity in identities:
            if identity in read:
                raise _refusal(each, read[identity], "read")
        own = identities[0]
        if own not in (None, stdout) and own in written:
            raise _refusal(each, written[own], "written")
        written[own] = each


def _refusal(output: NamedPath, other: NamedPath, verb: str) -> UsageError:
    same = "" if other.path == output.path else f" is the same file as {other.path}, which"
    return UsageError(
        f"{output.path}{same} is {verb} ({other.option}); {output.option} would overwrite it"
    )


def _check_folder(output: NamedPath, names: str, read: Iterable[NamedPath]) -> None:
    """Check that no input lies where names in a folder are written."""
    folder = os.path.realpath(output.path)
    for each in read:
        with suppress(OSError, ValueError):
            inside = Path(os.path.realpath(each.path)).relative_to(folder)
            if inside.parts and re.fullmatch(names, inside.parts[0]):
                raise _refusal(output, each, "read")


def _entries(folder: str, names: str) -> Iterator[str]:
    """Yield the files in a folder with one of the names."""
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        yield from (each.path for each in entries if re.fullmatch(names, each.name))


def _files_of(path: str, role: Reads) -> Iterator[str]:
    """Yield a path, the files that are read with it, and in it if it is a folder."""
    yield path
    if role.with_file is not None:
        yield from role.with_file(path)
    if role.folder_files:
        with suppress(OSError, ValueError):
            if Path(path).is_dir():
                for pattern in role.folder_files:
                    yield from map(str, Path(path).rglob(pattern))
            elif has_magic(path):
                root = Path(path).anchor
                yield from map(str, Path(root).glob(path[len(root) :]))


def _is_local(path: str) -> bool:
    return "://" not in path


def _identity(path: str) -> Hashable | None:
    """Return what all names of a file have in common; None for pipes, devices and terminals."""
    if path == STANDARD_STREAM:
        return _stream_identity(sys.stdin)
    try:
        found = Path(path).stat()
    except ValueError:  # no possible path
        return None
    except OSError:
        folder, name = os.path.split(os.path.realpath(path))
        with suppress(OSError):
            place = Path(folder).stat()
            return place.st_dev, place.st_ino, name
        return folder, name
    return _file_identity(found)


def _stream_identity(stream: object) -> Hashable | None:
    """Return the identity of the file that a standard stream is redirected to, if any."""
    with suppress(OSError, ValueError, AttributeError):
        return _file_identity(os.fstat(stream.fileno()))  # type: ignore[attr-defined]
    return None


def _file_identity(found: os.stat_result) -> Hashable | None:
    is_file = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return (found.st_dev, found.st_ino) if is_file else None
