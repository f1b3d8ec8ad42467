"""Events as rows of ndjson, csv and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dissector.column_catalogue import EVENTS
from dissector.engine.parquet.parquet_types import TYPES, FileType, list_of

_EVIDENCE = {
    "capture": "str",
    "connection": "int",
    "client": "str",
    "client_id": "str",
    "broker": "str",
    "request_packet": "int",
    "response_packet": "int",
    "correlation_id": "int",
    "api": "str",
}
_COLUMNS = {each.name: each.type for each in EVENTS}


def event_schema() -> dict[str, Any]:
    """Return the polars type of each column."""
    from dissector.polars_extra import polars

    words = {"int": polars.Int64(), "str": polars.String(), "bool": polars.Boolean()}
    evidence = polars.List(polars.Struct({name: words[kind] for name, kind in _EVIDENCE.items()}))
    return {name: {**words, "evidence": evidence}[kind] for name, kind in _COLUMNS.items()}


def event_types(chosen: Sequence[str] = ()) -> dict[str, FileType]:
    """Return the Parquet type of each column, or of those chosen."""
    types: dict[str, FileType] = {**TYPES, "evidence": list_of(_EVIDENCE)}
    return {name: types[_COLUMNS[name]] for name in chosen or _COLUMNS}
