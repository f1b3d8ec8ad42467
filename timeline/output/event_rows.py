"""Events as rows of ndjson, csv and Parquet."""

from __future__ import annotations

from typing import Any

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
_COLUMNS = {
    "time_ns": "int",
    "end_ns": "int",
    "kind": "str",
    "subject": "str",
    "event": "str",
    "cause": "str",
    "count": "int",
    "text": "str",
    "evidence": "evidence",
    "certain": "bool",
}


def event_schema() -> dict[str, Any]:
    """Return the polars type of each column."""
    import polars

    words = {"int": polars.Int64(), "str": polars.String(), "bool": polars.Boolean()}
    evidence = polars.List(polars.Struct({name: words[kind] for name, kind in _EVIDENCE.items()}))
    return {name: {**words, "evidence": evidence}[kind] for name, kind in _COLUMNS.items()}


def event_types() -> dict[str, FileType]:
    """Return the Parquet type of each column."""
    types: dict[str, FileType] = {**TYPES, "evidence": list_of(_EVIDENCE)}
    return {name: types[kind] for name, kind in _COLUMNS.items()}
