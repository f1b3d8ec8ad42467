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

from dissector.hooks.hook_types import Record
from dissector.protocol.embedded.secrecy.hidden_records import ALL_HEADERS
from dissector.query.contents.decoded_values import COLUMNS, cells_of
from dissector.query.contents.hooked_records import CELLS
from dissector.values.source_options import format_file
from dissector.values.value_masks import HIDDEN, ValueMasks, hidden_headers
from dissector.values.value_reader import NOTHING, DecodedValue, ValueReader
from dissector.values.value_settings import ValueSettings

_SIDES = {"key": True, "value": False}


_HIDDEN = HIDDEN.encode()


def found_values(
    sources: Iterable[str], formats: Iterable[str], masks: Iterable[str] = ()
) -> ValueSettings | None:
    """
    Return settings for tasks; None if nothing is to be decoded or hidden.

    Raises:
        UsageError: A source can't be used, or a mask is not a path.
    """
    settings = ValueSettings(tuple(sources), tuple(formats), masks=tuple(masks))
    return with_absolute_paths(settings)


def with_absolute_paths(settings: ValueSettings) -> ValueSettings | None:
    """
    Return settings for tasks, which run in other folders.

    None if nothing is to be decoded or hidden.

    Raises:
        UsageError: A source can't be used, or a mask is not a path.
    """
    if not settings.is_asked and not settings.masks:
        return None
    ValueMasks(settings.masks)
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


def with_decoded(
    batch: pa.RecordBatch, settings: ValueSettings | None, *, is_finished: bool = False
) -> pa.RecordBatch:
    """
    Return rows of `records` with their keys and values decoded, if that is wanted, and hidden.

    `is_finished`: they are of this function, but more topics have names; bytes that it has hidden
    stay decoded as they are.
    """
    if settings is None:
        return batch
    masks = ValueMasks(settings.masks) if settings.masks else None
    read = _no_value if settings.is_off else _reader(settings).read
    records = _records(batch)
    columns: dict[str, list[Any]] = {name: batch.column(name).to_pylist() for name in COLUMNS}
    for side, is_key in _SIDES.items():
        contents = batch.column(side).to_pylist()
        for row, content in enumerate(contents):
            if content is None or (is_finished and masks is not None and content == _HIDDEN):
                continue
            record = records[row]
            found = read(record.topic, content, record.headers, is_key=is_key, record=record)
            if masks is not None:
                found = masks.masked(found, is_key=is_key)
            for name, cell in cells_of(found, side).items():
                columns[name][row] = cell
        if masks is not None:
            hidden = [None if content is None else _HIDDEN for content in contents]
            batch = _with_column(batch, side, hidden)
    for name, cells in columns.items():
        batch = _with_column(batch, name, cells)
    return _without_headers(batch, frozenset(hidden_headers(settings.masks)))


def _records(batch: pa.RecordBatch) -> list[Record]:
    """Return the rows as hooks get them."""
    names = ("topic", "key", "value")
    first, cells = (
        [batch.column(name).to_pylist() for name in chosen] for chosen in (names, CELLS)
    )
    headers = map(_by_name, batch.column("headers").to_pylist())
    return list(map(Record, *first, headers, *cells))


def _no_value(*_: Any, is_key: bool, record: Record) -> DecodedValue:
    """Return no value: nothing is to be decoded."""
    return NOTHING


def _with_column(batch: pa.RecordBatch, name: str, cells: list[Any]) -> pa.RecordBatch:
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, name, pa.array(cells, batch.schema.field(at).type))


def _without_headers(batch: pa.RecordBatch, names: frozenset[str]) -> pa.RecordBatch:
    """Return rows with the values of some headers hidden."""
    if not names:
        return batch
    headers = [
        [
            {**each, "value": _HIDDEN} if {each["key"], ALL_HEADERS} & names else each
            for each in of_record or ()
        ]
        for of_record in batch.column("headers").to_pylist()
    ]
    return _with_column(batch, "headers", headers)


def _by_name(headers: list[Mapping[str, Any]] | None) -> Mapping[str, bytes]:
    return {each["key"]: each["value"] or b"" for each in headers or ()}
