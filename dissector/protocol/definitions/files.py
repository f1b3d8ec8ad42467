"""
Find message definitions in one of Kafka's JARs, a folder of JSON files, or a folder of JARs.

Source: kafka-clients (`common/message`), kafka-metadata (`common/metadata`), kafka-storage
(`message`).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dissector.errors import UsageError
from dissector.small_files import read_small_file

MAX_BYTES = 1 << 20
"""Larger files are not definitions; Kafka's largest has 25 KB."""

_IS_DEFINITION = re.compile(r"(?:^|/)(?:message|metadata)/[^/]+\.json$")


@dataclass(frozen=True, slots=True)
class DefinitionFile:
    """
    A file with one definition.

    Attributes:
        source: The JAR or folder, as given.
        name: The file, for messages: `kafka-clients-4.4.0.jar!common/message/FetchRequest.json`.
        content: Its bytes; None if they can't be read or are too many.
    """

    source: str
    name: str
    content: bytes | None


def definition_files(source: str) -> list[DefinitionFile]:
    """
    Return the definitions in a JAR or a folder, in order of their names.

    Raises:
        UsageError: It can't be read, or has no definitions.
    """
    path = Path(source)
    if path.exists() and not (path.is_dir() or path.is_file()):  # a device or pipe may never end
        raise UsageError(f"{source}: neither a JAR nor a folder of definitions")
    try:
        found = list(_in_folder(source, path) if path.is_dir() else _in_jar(source, path))
    except OSError as error:
        raise UsageError(f"{source}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise UsageError(f"{source}: neither a JAR nor a folder of definitions ({error})") from None
    if not found:
        raise UsageError(
            f"{source}: no message definitions (common/message/*.json); kafka-clients has them"
        )
    return found


def _in_folder(source: str, folder: Path) -> Iterator[DefinitionFile]:
    for path in sorted(folder.rglob("*.json")):
        inside = path.relative_to(folder).as_posix()
        if "/" not in inside or _IS_DEFINITION.search(inside):
            yield DefinitionFile(source, str(path), _content(path))
    for path in sorted(folder.glob("*.jar")):
        if path.is_file():
            yield from _in_jar(source, path)


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file; None of a device, a pipe, or a larger one."""
    try:
        return read_small_file(path, max_bytes=MAX_BYTES) if path.is_file() else None
    except UsageError:
        return None


def _in_jar(source: str, path: Path) -> Iterator[DefinitionFile]:
    with zipfile.ZipFile(path) as jar:
        for info in sorted(jar.infolist(), key=lambda each: each.filename):
            if not _IS_DEFINITION.search(info.filename):
                continue
            try:
                content = jar.read(info) if info.file_size <= MAX_BYTES else None
            except (zipfile.BadZipFile, RuntimeError, EOFError):
                content = None
            yield DefinitionFile(source, f"{path}!{info.filename}", content)
