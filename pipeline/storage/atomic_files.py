"""Files that are whole or not there, on this machine or wherever Arrow can write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

from dissector.errors import PipelineError
from pipeline.storage.filesystems import describe_error, is_uri, locate

ATOMIC_STORES = ("s3://", "s3a://", "gs://", "gcs://", "abfs://", "abfss://")
"""Stores where a file appears when it is closed, and not before."""


@contextmanager
def atomic_write(path: str, *, private: bool = False) -> Iterator[IO[bytes]]:
    """
    Open a file for a `with`, which appears under its name at the end, over one that was there.

    A task that is tried again writes the same names, so that nothing is there twice.

    Args:
        path: A path or URI.
        private: On this machine, nobody else may read it.

    Raises:
        PipelineError: It can't be written.
    """
    try:
        with _remote(path) if is_uri(path) else _local(Path(path), private) as file:
            yield file
    except OSError as error:
        what = error.strerror or describe_error(error)
        raise PipelineError(f"{path}: can't be written: {what}") from error


@contextmanager
def _local(path: Path, private: bool) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"_{uuid4().hex}")
    try:
        part.touch(0o600 if private else 0o666)
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _remote(path: str) -> Iterator[IO[bytes]]:
    system, inside = locate(path)
    folder, _, name = inside.rpartition("/")
    system.create_dir(folder, recursive=True)
    part = inside if path.startswith(ATOMIC_STORES) else f"{folder}/_{uuid4().hex}-{name}"
    try:
        with cast(Any, system.open_output_stream(part)) as file:
            yield file
        if part != inside:
            system.move(part, inside)
    except BaseException:
        with suppress(OSError):
            system.delete_file(part)
        raise


def join_path(folder: str, *names: str) -> str:
    """Return a path inside a folder."""
    return "/".join((folder.rstrip("/"), *names))


@contextmanager
def _reached(path: str) -> Iterator[None]:
    """Turn what a file system raises that is asked for a path into an error of ours."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path}: {describe_error(error)}") from None


def remove_folder(folder: str) -> None:
    """Remove a folder and all that is in it, if it is there."""
    if is_folder(folder):
        with _reached(folder):
            system, inside = locate(folder)
            system.delete_dir(inside)


def is_folder(path: str) -> bool:
    """Tell whether a folder is there."""
    from pyarrow import fs

    with _reached(path):
        system, inside = locate(path)
        return bool(system.get_file_info(inside).type == fs.FileType.Directory)


def has_files(folder: str) -> bool:
    """Tell whether a folder is there and holds anything."""
    from pyarrow import fs

    with _reached(folder):
        system, inside = locate(folder)
        return bool(system.get_file_info(fs.FileSelector(inside, allow_not_found=True)))
