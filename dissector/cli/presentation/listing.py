"""Output of `--list-columns` and `--list-fields`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dissector.column_catalogue import (
    ACCOUNTS,
    CONNECTIONS,
    EVENTS,
    EXCHANGES,
    FROM_BODIES,
    GROUPS,
    MESSAGES,
    RECORDS,
    STATISTICS,
    UPGRADES,
    VALUE_USES,
    VALUES,
    Catalogue,
)

CATALOGUES: Mapping[str, Catalogue] = {
    "dissect": MESSAGES,
    "pairs": (*EXCHANGES, *ACCOUNTS, *FROM_BODIES),
    "records": (*RECORDS, *VALUES),
    "streams": CONNECTIONS,
    "stats": STATISTICS,
    "groups": GROUPS,
    "upgrade": UPGRADES,
    "schemas": VALUE_USES,
    "timeline": EVENTS,
}
"""The columns of commands."""

TYPES = {
    "str": "text",
    "strs": "list of texts",
    "int": "integer",
    "int32": "integer",
    "int16": "integer",
    "int8": "integer",
    "float": "number",
    "bool": "true or false",
    "bytes": "bytes",
    "headers": "list of key and value",
    "evidence": "list of exchanges",
}
"""Types of columns in words."""


def print_columns(command: str) -> None:
    """Print the columns of a command, with types and meanings."""
    _print((each.name, TYPES[each.type], each.meaning) for each in CATALOGUES[command])


def print_fields(command: str) -> None:
    """Print the names for a command's filter."""
    from dissector.filter import field_list

    _print(field_list(records=command in ("records", "schemas")))


def _print(rows: Iterable[tuple[str, str, str]]) -> None:
    found = list(rows)
    widths = [max(map(len, column)) for column in list(zip(*found, strict=True))[:2]]
    for name, kind, meaning in found:
        print(f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {meaning}")
