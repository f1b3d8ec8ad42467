"""
Columns of `records` that say what keys and values mean, of finished rows.

They are decoded when the names of all topics are known. Tasks read the named sources themselves;
schemas in the captures would need a pass over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from dissector.query.decoded_values import COLUMNS, cells_of
from dissector.values.source_options import format_file
from dissector.values.value_reader import NOTHING, ValueReader
from dissector.values.value_settings import ValueSettings

_SIDES = {"key": True, "value": False}


def found_values(sources: Iterable[str], formats: Iterable[str]) -> ValueSettings | None:
    """
    Return settings for tasks; None if nothing is to be decoded.

    Raises:
        UsageError: A source can't be used.
    """
    return with_absolute_paths(ValueSettings(tuple(sources), tuple(formats)))


def with_absolute_paths(settings: ValueSettings) -> ValueSettings | None:
    """
    Return settings for tasks, which run in other folders; None if nothing is to be decoded.

    Raises:
        UsageError: A source can't be used.
    """
    if not settings.is_asked:
        return None
    settings.reader()
    sources = tuple(
        each if "://" in each else str(Path(each).absolute()) for each in settings.sources
    )
    scripts = tuple(str(Path(each).absolute()) for each in settings.scripts)
    formats = tuple(map(_absolute, settings.formats))
    return replace(settings, sources=sources, formats=formats, scripts=scripts)


def _absolute(text: str) -> str:
    """Return the format of a topic with the absolute path of its file."""
    file = format_file(text)
    return text.replace(f":{file}", f":{Path(file).absolute()}", 1) if file else text


@lru_cache(maxsize=4)
def _reader(settings: ValueSettings) -> ValueReader:
    """Return the reader of a process, which reads its sources once."""
    return settings.reader()


def with_decoded(batch: pa.RecordBatch, settings: ValueSettings | None) -> pa.RecordBatch:
    """Return rows of `records` with their keys and values decoded, if that is wanted."""
    if settings is None:
        return batch
    reader = _reader(settings)
    topics = batch.column("topic").to_pylist()
    headers = [_by_name(each) for each in batch.column("headers").to_pylist()]
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for side, is_key in _SIDES.items():
        contents = batch.column(side).to_pylist()
        for topic, content, of_record in zip(topics, contents, headers, strict=True):
            found = NOTHING
            if content is not None:
                found = reader.read(topic, content, of_record, is_key=is_key)
            for name, cell in cells_of(found, side).items():
                columns[name].append(cell)
    for name, cells in columns.items():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, pa.array(cells, pa.string()))
    return batch


def _by_name(headers: list[Mapping[str, Any]] | None) -> Mapping[str, bytes]:
    return {each["key"]: each["value"] or b"" for each in headers or ()}
