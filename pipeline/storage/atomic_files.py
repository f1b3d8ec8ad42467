"""Files that are complete or absent, local or on any file system of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

from dissector.errors import PipelineError
from pipeline.storage.filesystems import describe_error, is_uri, locate

ATOMIC_STORES = ("s3://", "s3a://", "gs://", "gcs://", "abfs://", "abfss://")
"""Object stores that show a file only after it is closed."""


@contextmanager
def atomic_write(path: str, *, private: bool = False) -> Iterator[IO[bytes]]:
    """
    Open a file for writing; it appears under its name, or replaces that file, at the end.

    A retried task writes the same names, so no rows are duplicated.

    Args:
        path: A path or URI.
        private: Whether a local file is readable by its owner only.

    Raises:
        PipelineError: The file can't be written.
    """
    try:
        with _remote(path) if is_uri(path) else _local(Path(path), private) as file:
            yield file
    except OSError as error:
        cause = error.strerror or describe_error(error)
        raise PipelineError(f"{path}: can't be written: {cause}") from error


@contextmanager
def _local(path: Path, private: bool) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"_{uuid4().hex}")
    try:
        temporary.touch(0o600 if private else 0o666)
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _remote(path: str) -> Iterator[IO[bytes]]:
    system, inside = locate(path)
    folder, _, name = inside.rpartition("/")
    system.create_dir(folder, recursive=True)
    temporary = inside if path.startswith(ATOMIC_STORES) else f"{folder}/_{uuid4().hex}-{name}"
    try:
        with cast(Any, system.open_output_stream(temporary)) as file:
            yield file
        if temporary != inside:
            system.move(temporary, inside)
    except BaseException:
        with suppress(OSError):
            system.delete_file(temporary)
        raise


def join_path(folder: str, *names: str) -> str:
    """Return a path inside a folder."""
    return "/".join((folder.rstrip("/"), *names))


@contextmanager
def _storage_errors(path: str) -> Iterator[None]:
    """Convert errors of a file system into PipelineError."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path}: {describe_error(error)}") from None


def remove_folder(folder: str) -> None:
    """Remove a folder and all that is in it, if it exists."""
    if is_folder(folder):
        with _storage_errors(folder):
            system, inside = locate(folder)
            system.delete_dir(inside)


def remove_file(path: str) -> None:
    """Remove a file, if it exists."""
    with _storage_errors(path):
        system, inside = locate(path)
        with suppress(FileNotFoundError):
            system.delete_file(inside)


def is_folder(path: str) -> bool:
    """Return whether a folder exists."""
    from pyarrow import fs

    with _storage_errors(path):
        system, inside = locate(path)
        return bool(system.get_file_info(inside).type == fs.FileType.Directory)


def has_files(folder: str) -> bool:
    """Return whether a folder exists and is not empty."""
    from pyarrow import fs

    with _storage_errors(folder):
        system, inside = locate(folder)
        return bool(system.get_file_info(fs.FileSelector(inside, allow_not_found=True)))
