"""Tables of captures as lazy frames of polars, which read only the columns and rows they need."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, get_args

from dissector.column_catalogue import EXCHANGES, RECORDS
from dissector.engine.reading.capture import Options
from dissector.engine.tables import polars_tables
from dissector.errors import FilterError, UsageError, suggestion
from dissector.query.selection import check_filter

if TYPE_CHECKING:
    import polars

    from dissector.engine.tables.column_types import Columns

TableName: TypeAlias = Literal["exchanges", "records", "fields"]

_TESTABLE: Mapping[str, Mapping[str, str]] = {
    "exchanges": {each.name: each.type for each in EXCHANGES},
    "records": {each.name: each.type for each in RECORDS},
    "fields": {"api": "str"},  # other columns describe a message, not its exchange
}
"""Columns of tables with the same values as in display filters, and their types."""

_MIRRORED = {"==": "==", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_OPERATORS = {"Eq": "==", "Gt": ">", "GtEq": ">=", "Lt": "<", "LtEq": "<="}
"""polars' name of a comparison -> ours."""

_PLAIN = re.compile(r"[A-Za-z0-9_./:@ -]+")
"""Texts that are the same in tables and filters: without escapes."""

_MARGIN_MS = 0.001
"""A filter of milliseconds passes so much more, because it may compare them in another unit."""

_MAX_NUMBER = 1 << 62


class Scanned(Protocol):
    """A capture for one pass."""

    options: Options

    @property
    def has_logs(self) -> bool:
        """Whether a file is a request log."""

    def parts(self, asked: frozenset[str] | None = None) -> Iterator[Columns]:
        """Yield the exchanges with the asked columns."""

    def record_batches(self, columns: Collection[str] | None = None) -> Iterator[polars.DataFrame]:
        """Yield columns of the records."""

    def field_batches(self) -> Iterator[polars.DataFrame]:
        """Yield the fields."""


def scan_table(table: str, opened: Callable[[str | None], Scanned]) -> polars.LazyFrame:
    """
    Return a table as a lazy frame.

    Args:
        table: One of `TableName`.
        opened: Returns a capture for one pass, narrowed by a display filter.

    Raises:
        UsageError: There is no such table.
        CaptureError: A file can't be opened.
    """
    names = get_args(TableName)
    if table not in names:
        known = ", ".join(names)
        raise UsageError(f"scan takes {known}, not {table!r}{suggestion(str(table), names)}")
    schema = _schema(table, opened(None))
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: polars.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        tested = () if predicate is None else predicate.meta.root_names()
        wanted = schema.keys() if columns is None else {*columns, *tested}
        # A limit counts rows before the predicate.
        text = None if predicate is None or rows is not None else display_filter(table, predicate)
        needed = {name: kind for name, kind in schema.items() if name in wanted}
        for frame in _frames(table, opened(text), needed):
            part = frame if rows is None else frame.head(rows)
            rows = None if rows is None else rows - len(part)
            if predicate is not None:
                part = part.filter(predicate)
            yield part if columns is None else part.select(columns)
            if rows == 0:
                return

    return register_io_source(read, schema=schema)


def _schema(table: str, capture: Scanned) -> dict[str, Any]:
    if table == "fields":
        from dissector.engine.fields.field_frame import field_schema

        return field_schema()
    if table == "records":
        values = capture.options.values is not None
        added = polars_tables.value_schema() if values else {}
        return {**polars_tables.record_schema(), **added}
    return dict(polars_tables.exchange_schema(logs=capture.has_logs))


def _frames(table: str, capture: Scanned, needed: Mapping[str, Any]) -> Iterator[polars.DataFrame]:
    """Yield the needed columns of a table in parts."""
    if table == "fields":
        for part in capture.field_batches():
            yield part.select(needed.keys())
    elif table == "records":
        yield from capture.record_batches(needed.keys())
    else:
        yield from polars_tables.part_frames(capture.parts(frozenset(needed)), needed)


def display_filter(table: str, predicate: polars.Expr) -> str | None:
    """
    Return a display filter that passes all rows of a table that a predicate passes.

    It may pass more: tests that it can't express are left out. None: it would pass all.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # polars may change this form, which is read with care
            tree = json.loads(predicate.meta.serialize(format="json"))
        text = " and ".join(_tests(tree, _TESTABLE[table]))
        if text:
            check_filter(text)
    except (ValueError, TypeError, KeyError, RecursionError, FilterError):
        return None
    return text or None


def _tests(tree: Any, testable: Mapping[str, str]) -> Iterator[str]:
    """Yield the tests of a conjunction that a display filter can do."""
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And", "right": right}}:
            yield from _tests(left, testable)
            yield from _tests(right, testable)
        case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(op), "right": right}}:
            yield from _test(name, testable.get(name), _OPERATORS.get(op), _number_or_text(right))
        case {"BinaryExpr": {"left": left, "op": str(op), "right": {"Column": str(name)}}}:
            operator = _MIRRORED.get(_OPERATORS.get(op, ""))
            yield from _test(name, testable.get(name), operator, _number_or_text(left))


def _test(name: str, kind: str | None, operator: str | None, value: object) -> Iterator[str]:
    if kind is None or operator is None:
        return
    if kind == "str" and isinstance(value, str) and operator == "==" and _PLAIN.fullmatch(value):
        yield f'{name} == "{value}"'
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return
    elif kind.startswith("int") and isinstance(value, int) and 0 <= value < _MAX_NUMBER:
        yield f"{name} {operator} {value}"
    elif kind == "float" and 1 <= value < 1e9 and operator in (">", ">=", "<", "<="):
        margin = -_MARGIN_MS if operator[0] == ">" else _MARGIN_MS
        yield f"{name} {operator} {value + margin:.6f}"


def _number_or_text(tree: Any) -> object:
    """Return the value of a literal; None for another operand."""
    match tree:
        case {"Literal": {"Scalar": dict(found)} | {"Dyn": dict(found)}} if len(found) == 1:
            ((kind, value),) = found.items()
            return value if kind.startswith(("String", "Int", "UInt", "Float")) else None
    return None
