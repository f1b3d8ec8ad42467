"""Protobuf schemas in files: `.proto` texts with those that they import, and descriptor sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dissector.errors import UsageError
from dissector.small_files import MAX_FILE_BYTES, read_small_file, read_small_text
from dissector.values.protobuf.descriptor_sets import files_of_set
from dissector.values.protobuf.proto_schema import parse_file
from dissector.values.value_limits import SchemaProblem

_DESCRIPTOR_SUFFIXES = (".desc", ".protoset")
PROTO_SUFFIXES = (".proto", *_DESCRIPTOR_SUFFIXES)

_MAX_IMPORTS = 1000


def read_proto_file(file: Path, root: Path) -> tuple[str, tuple[str, ...]]:
    """
    Return the schema in a file, and those that it imports.

    Args:
        file: A `.proto` text; or a descriptor set, whose last file is the schema.
        root: Imports are followed only inside this folder.

    Raises:
        UsageError: It can't be read, or is no schema.
    """
    try:
        if file.suffix in _DESCRIPTOR_SUFFIXES:
            files = files_of_set(read_small_file(file, "the schema ", MAX_FILE_BYTES))
            if not files:
                raise UsageError(f"{file}: no descriptor in it")
            return files[-1], tuple(files[:-1])
        text, *imported = _with_imports(file, root).values()
    except SchemaProblem as problem:
        raise UsageError(f"{file}: {problem}") from None
    return text, tuple(imported)


def imports_of(file: Path) -> list[Path]:
    """Return the files that a `.proto` text in a folder imports; none if it can't be read."""
    try:
        _, *imported = _with_imports(file, file.parent)
    except (SchemaProblem, UsageError):
        return []
    return imported


def _with_imports(file: Path, root: Path) -> dict[Path, str]:
    """Return the texts of a file and of those that it imports, the file first."""
    text = read_small_text(file, "the schema ")
    found: dict[Path, str] = {file.resolve(): text}
    _follow(parse_file(text).imports, file, root.resolve(), found)
    return found


def _follow(imports: Iterable[str], file: Path, root: Path, found: dict[Path, str]) -> None:
    """Add the files that a file imports, and those that these import, if they are there."""
    waiting = [(each, file) for each in imports]
    while waiting and len(found) < _MAX_IMPORTS:
        name, importer = waiting.pop()
        for folder in (root, importer.parent.resolve()):
            path = (folder / name).resolve()
            if path.is_relative_to(root) and path.is_file():
                if path not in found:
                    found[path] = text = read_small_text(path, "the schema ")
                    waiting += [(each, path) for each in parse_file(text).imports]
                break
