"""
Schemas in files that a user names: `.avsc`, `.json`, `.proto`, `.desc`, and dumps of a registry.

A file is the schema of the subject that it is named after; one that is named after a number or a
GUID is the schema with that id.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

from dissector.errors import UsageError
from dissector.small_files import MAX_FILE_BYTES, read_small_file, read_small_text
from dissector.values.carriers.carried_schema import SchemaRef
from dissector.values.json_values import json_value
from dissector.values.schemas.known_schema import AVRO, JSON_SCHEMA, PROTOBUF
from dissector.values.schemas.proto_files import PROTO_SUFFIXES, read_proto_file
from dissector.values.schemas.registry_entries import add_entry, is_entry
from dissector.values.schemas.schema_store import SchemaStore, guid_of
from dissector.values.source_options import SOURCE_FILES
from dissector.values.value_limits import ValueProblem

MAX_FILES = 10_000


def add_source(store: SchemaStore, source: str) -> None:
    """
    Add the schemas of a file, or of a folder with the folders in it.

    Files of a folder that are no schemas become `store.problems`. Devices and pipes in a folder
    may never end, so they are passed over.

    Raises:
        UsageError: It can't be read, or has no schema.
    """
    path, before = Path(source), len(store)
    if not path.is_dir():
        _add_file(store, path, path.parent)
    else:
        found = {file for pattern in SOURCE_FILES for file in path.rglob(pattern) if file.is_file()}
        problems = []
        for file in sorted(found)[:MAX_FILES]:
            try:
                _add_file(store, file, path)
            except UsageError as error:
                problems.append(str(error))
        if len(store) == before:
            first = problems[0] if problems else ", ".join(SOURCE_FILES)
            raise UsageError(f"{source}: no schema in it ({first})")
        store.problems += problems


def read_schema_file(kind: str, file: Path, root: Path) -> tuple[str, tuple[str, ...]]:
    """
    Return the text of a schema, and those of the schemas that it imports.

    Args:
        kind: See `KnownSchema`.
        file: The file.
        root: Imports are followed only inside this folder.

    Raises:
        UsageError: It can't be read, or is no schema.
    """
    if kind == PROTOBUF:
        return read_proto_file(file, root)
    return read_small_text(file, "the schema "), ()


def _add_file(store: SchemaStore, file: Path, root: Path) -> None:
    refs = _refs(file.stem)
    if file.suffix in PROTO_SUFFIXES:
        text, imported = read_proto_file(file, root)
        store.add(PROTOBUF, text, file.stem, refs=refs, imported=imported)
        return
    content = read_small_file(file, "the schema ", MAX_FILE_BYTES).removeprefix(BOM_UTF8)
    try:
        value = json_value(content)
    except ValueProblem as problem:
        raise UsageError(f"{file}: {problem}") from None
    entries = value if isinstance(value, list) else [value]
    if all(map(is_entry, entries)) and entries:
        for entry in entries:
            add_entry(store, entry)
        return
    kind = kind_of(value, file.suffix)
    if kind is None:
        raise UsageError(f"{file}: neither a schema nor a dump of a registry")
    store.add(kind, content.decode(), file.stem, refs=refs)


def _refs(stem: str) -> tuple[SchemaRef, ...]:
    if stem.isascii() and stem.isdecimal() and len(stem) < 19:
        return (int(stem),)
    guid = guid_of(stem)
    return () if guid is None else (guid,)


_AVRO_WORDS = {"record", "enum", "fixed", "array", "map", "error"}


def kind_of(value: Any, suffix: str) -> str | None:
    """Return the kind of a schema in a JSON file; None if it is not one."""
    if suffix == ".avsc" or (isinstance(value, list) and value):
        return AVRO
    if not isinstance(value, dict):
        return None
    if value.get("type") in _AVRO_WORDS and not {"$schema", "properties"} & value.keys():
        return AVRO
    words = {"$schema", "properties", "$ref", "oneOf", "anyOf", "allOf", "type"}
    return JSON_SCHEMA if words & value.keys() else None


def kind_of_text(text: str) -> str | None:
    """Return the kind of a schema whose registry names none; None if it is not one."""
    try:
        value = json_value(text.encode())
    except ValueProblem:
        return PROTOBUF if _PROTO_WORDS.search(text) else None
    return AVRO if isinstance(value, str) else kind_of(value, "")


_PROTO_WORDS = re.compile(r"\b(syntax|message|enum|package)\b")
