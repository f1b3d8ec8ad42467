"""Formats and schemas of the keys and values of topics: who wrote and read them, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dissector.column_catalogue import VALUE_USES, names
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Integers,
    Slices,
    distinct,
    row_count,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.filter.evaluate import values_at
from dissector.query.contents.decoded_values import RecordValues
from dissector.values.value_reader import DecodedValue
from dissector.view.json.body import mask_record_row
from dissector.view.text.value_text import json_text

COLUMNS = names(VALUE_USES)

DECODED = tuple(
    f"{side}_{name}" for side in ("key", "value") for name in ("format", "schema", "problem")
)
"""The columns of decoded keys and values that uses are counted by."""

MAX_USES = 100_000
"""Topics with their schemas that are counted; hostile records may name any number."""

Use: TypeAlias = tuple[str | None, str, str | None, str | None]
"""Topic, `key` or `value`, format and schema."""


@dataclass(slots=True)
class _Totals:
    records: int = 0
    undecoded: int = 0
    problem: str | None = None
    first: tuple[int, int] = (1 << 62, 0)
    last: tuple[int, int] = (-1, 0)
    clients: dict[str, dict[str, None]] = field(default_factory=lambda: {"Produce": {}})

    def add(self, packet: Ints, time_ns: Ints) -> None:
        """Add records by their packets and times."""
        self.records += len(packet)
        first, last = int(np.argmin(packet)), int(np.argmax(packet))
        self.first = min(self.first, (int(packet[first]), int(time_ns[first])))
        self.last = max(self.last, (int(packet[last]), int(time_ns[last])))

    def add_client(self, api: str, client: str | None) -> None:
        """Add a client; `Produce` for those that wrote."""
        side = api if api == "Produce" else "Fetch"
        self.clients.setdefault(side, {})[client or ""] = None


class ValueUses:
    """
    Counts the uses of formats and schemas.

    Attributes:
        is_cut: Whether there are more than `MAX_USES`.
    """

    def __init__(self) -> None:
        self._totals: dict[Use, _Totals] = {}
        self.is_cut = False

    def add(self, columns: Columns) -> None:
        """Add records, with the columns `DECODED`."""
        if not row_count(columns):
            return
        packets, times = _numbers(columns["packet"]), _numbers(columns["time_ns"])
        for side in ("key", "value"):
            grouped = ("topic", f"{side}_format", f"{side}_schema", f"{side}_problem")
            coded = [_coded(columns[name]) for name in (*grouped, "api", "client_id")]
            present = np.flatnonzero(_is_present(columns[side]))
            numbers = np.zeros(len(present), np.int64)
            for each in coded:  # in the order of all codes, null first
                codes = each.codes[present]
                place = np.where(codes == NONE, 0, codes + 1)
                numbers, _ = distinct(numbers * (len(each.values) + 1) + place)
            order = np.argsort(numbers, kind="stable")
            begin = 0
            for end in np.cumsum(np.bincount(numbers)).tolist():
                rows = present[order[begin:end]]
                texts = [each.value(int(rows[0])) for each in coded]
                self._add(side, texts, packets[rows], times[rows])
                begin = end

    def _add(self, side: str, texts: list[str | None], packet: Ints, time_ns: Ints) -> None:
        topic, format_name, schema, problem, api, client = texts
        use = topic, side, format_name, schema
        totals = self._totals.get(use)
        if totals is None:
            self.is_cut = len(self._totals) >= MAX_USES
            if self.is_cut:
                return
            totals = self._totals[use] = _Totals()
        totals.add(packet, time_ns)
        totals.add_client(api or "", client)
        if problem is not None:
            totals.undecoded += len(packet)
            totals.problem = totals.problem or problem

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each use, with the columns `VALUE_USES`, by topic and first use."""
        found = []
        before: dict[tuple[str | None, str], str | None] = {}
        ordered = sorted(self._totals.items(), key=lambda item: _order(*item))
        for (topic, side, format_name, schema), totals in ordered:
            shown = schema or format_name
            values = (
                *(topic, side, format_name, schema, before.get((topic, side))),
                *(totals.records, totals.undecoded, totals.problem),
                *(sorted(totals.clients["Produce"]), sorted(totals.clients.get("Fetch", ()))),
                *(totals.first[0], totals.last[0], totals.first[1], totals.last[1]),
            )
            found.append(dict(zip(COLUMNS, values, strict=True)))
            before[topic, side] = shown
        return found


def _order(use: Use, totals: _Totals) -> tuple[Any, ...]:
    topic, side, format_name, schema = use
    return topic or "", side, totals.first, schema or "", format_name or ""


def _numbers(column: Any) -> Ints:
    assert isinstance(column, Integers)
    return column.values


def _coded(column: Any) -> Coded:
    assert isinstance(column, Coded)
    return column


def _is_present(column: Any) -> Any:
    """Return which keys or values are not null."""
    if isinstance(column, Slices):
        return column.start != NONE
    return np.array([column.value(row) is not None for row in range(len(column))], np.bool_)


_WITH_RECORDS = ("Produce", "Fetch", "ShareFetch")


def fields_of(
    exchange: Exchange, values: RecordValues, names: Sequence[str]
) -> dict[str, list[str]]:
    """
    Return the texts of fields in the records of an exchange, each once; hidden ones are masked.

    Args:
        exchange: The exchange.
        values: What decodes keys and values.
        names: Side and path of each field: `value.user.id`.
    """
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    if names and exchange.api in _WITH_RECORDS:
        for row in record_rows(exchange):
            if row["topic"] is not None:
                mask_record_row(row["topic"], row)
            decoded: dict[str, DecodedValue] = {}
            for name, texts in found.items():
                side, *path = name.split(".")
                if side not in decoded:
                    decoded[side] = values.shown(row, side)
                for value in values_at(decoded[side].value, path):
                    texts[value if isinstance(value, str) else json_text(value)] = None
    return {name: list(texts) for name, texts in found.items()}


def schemas_of(exchange: Exchange, values: RecordValues) -> dict[str, list[str]]:
    """Return the schemas of the keys and values in the records of an exchange, each once."""
    found: dict[str, dict[str, None]] = {"key_schema": {}, "value_schema": {}}
    if exchange.api in _WITH_RECORDS:
        for row in record_rows(exchange):
            record = values.record(row)
            for name, schemas in found.items():
                schema = record.column(name)
                if isinstance(schema, str):
                    schemas[schema] = None
    return {name: list(schemas) for name, schemas in found.items()}
