"""Completes the rows of one part with values from the whole collection: numbers and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dissector.capture.columns import Int64s
from dissector.polars_extra import polars as pl
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.values.value_settings import ValueSettings
from dissector.view.json.body import mask_record_row
from pipeline.storage.text_codes import plain_rows
from pipeline.tables.decoded_columns import with_decoded
from pipeline.tables.shared_facts import ID_MARK, non_broker_connections, topic_names
from pipeline.tables.table_schemas import EVENTS

_NOT_KAFKA = {
    "speaks": "other",
    "client": None,
    "origin": None,
    "skipped_a": 0,
    "skipped_b": 0,
    "entered_a": None,
    "entered_b": None,
}
"""Values of a connection that looked like Kafka until its server turned out not to be a broker."""

_ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""Candidate topic ids in the text of an event."""

_WITH_TOPICS = ("exchanges", "messages")


@dataclass(slots=True)
class RowFinisher:
    """
    Completes the rows of one part with facts of the whole collection.

    Attributes:
        first_packets: The first packets of all connections, in order: a connection's number is its
            index. None: the first packet stays in place of the number.
        facts: The facts of all parts: names of topics by their ids, and the addresses of brokers.
        show_secrets: Leave credentials in Kafka's own topics unmasked.
        numbers: The connections' numbers, if they differ from the index.
        values: How keys and values of records are decoded, and what is hidden; None: they are not.
        keeps_codes: Whether rows keep codes in place of texts; see `text_codes`.
    """

    first_packets: Int64s | None
    facts: Mapping[str, str] = field(default_factory=dict)
    show_secrets: bool = False
    numbers: Int64s | None = None
    values: ValueSettings | None = None
    keeps_codes: bool = False
    _non_brokers: Int64s = field(init=False)
    _topics: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._non_brokers = non_broker_connections(self.facts)
        self._topics = topic_names(self.facts)

    def __call__(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the final rows of the table with this name."""
        if name == EVENTS:
            return self.fill_in_names(name, batch)
        if not self.keeps_codes:
            batch = plain_rows(batch)
        if "connection" not in batch.schema.names:
            return batch
        if len(self._non_brokers):
            batch = self._without_non_brokers(name, batch)
        if self.first_packets is not None:
            batch = self._with_numbers(batch, self.first_packets)
        if name in _WITH_TOPICS:
            batch = self._with_topics(batch) if "topics" in batch.schema.names else batch
        elif name == "records":
            batch = self._finish_records(batch)
        return batch

    def _without_non_brokers(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Correct the rows of connections to a server that is not a broker."""
        column = batch.column("connection")
        is_affected = np.isin(np.asarray(column.fill_null(-1)), self._non_brokers)
        if not is_affected.any():
            return batch
        if name != "connections":
            return batch.filter(pa.array(~is_affected))
        for column, value in _NOT_KAFKA.items():
            at = batch.schema.get_field_index(column)
            kind = batch.schema.field(at).type
            values = pc.if_else(pa.array(is_affected), pa.scalar(value, kind), batch.column(at))
            batch = batch.set_column(at, column, values)
        at = batch.schema.get_field_index("protocols")
        spoken = pc.replace_substring(batch.column(at), "kafka", "other")
        values = pc.if_else(pa.array(is_affected), spoken, batch.column(at))
        return batch.set_column(at, "protocols", values)

    def _with_numbers(self, batch: pa.RecordBatch, first_packets: Int64s) -> pa.RecordBatch:
        at = batch.schema.get_field_index("connection")
        column = batch.column(at)
        has_number = np.asarray(column.is_valid())
        numbers = np.searchsorted(first_packets, np.asarray(column.fill_null(0)))
        if self.numbers is not None:
            numbers = self.numbers[numbers] if len(first_packets) else np.zeros_like(numbers)
        return batch.set_column(at, "connection", pa.array(numbers, pa.int64(), mask=~has_number))

    def unnamed_topic_ids(self, name: str, batch: pa.RecordBatch) -> set[str]:
        """Return the topic ids without a name in unfinished rows."""
        if name in _WITH_TOPICS:
            ids = {each[len(ID_MARK) :] for each in _marked(batch)}
        elif name == "records":
            rows = batch.filter(pc.is_null(batch.column("topic")))
            ids = set(rows.column("topic_id").drop_null().to_pylist())
        elif name == EVENTS:
            ids = ids_in_texts(batch)
        else:
            ids = set()
        return ids - self._topics.keys()

    def fill_in_names(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return finished rows with the names of topics that have become known since."""
        if name in _WITH_TOPICS:
            return _replaced(batch, self._topics)
        if name == EVENTS:
            return _with_names_in_text(batch, self._topics)
        return self._finish_records(batch, is_finished=True)

    def _with_topics(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replace marked ids by names, or by the ids themselves."""
        ids = {each: each[len(ID_MARK) :] for each in _marked(batch)}
        return _replaced(batch, {each: self._topics.get(to, to) for each, to in ids.items()})

    def _finish_records(
        self, batch: pa.RecordBatch, *, is_finished: bool = False
    ) -> pa.RecordBatch:
        """Fill in the names of topics, mask the secrets of Kafka's own, and decode values."""
        made = batch.schema.names
        if "topic" in made:
            batch = self._with_topic(batch)
        if "value" in made and not self.show_secrets:
            batch = _masked(batch)
        return with_decoded(batch, self.values, is_finished=is_finished)

    def _with_topic(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Fill in the names of topics known by id only."""
        at = batch.schema.get_field_index("topic")
        ids: Any = pl.from_arrow(batch.column("topic_id"))
        topics: Any = pl.from_arrow(batch.column(at))
        unnamed = topics.is_null() & ids.is_not_null()
        if not self._topics or not unnamed.any():
            return batch
        names = ids.replace_strict(self._topics, default=None, return_dtype=pl.String)
        column = topics.zip_with(~unnamed, names).to_arrow().cast(pa.string())
        return batch.set_column(at, "topic", column)


def _marked(batch: pa.RecordBatch) -> list[str]:
    """Return the marked topic ids in place of names."""
    topics: Any = pl.from_arrow(batch.column("topics"))
    each = topics.explode().drop_nulls().unique()
    found: list[str] = each.filter(each.str.starts_with(ID_MARK)).to_list()
    return found


def _replaced(batch: pa.RecordBatch, to: Mapping[str, str]) -> pa.RecordBatch:
    """Return rows with topic names replaced, each listed once per row."""
    if not to:
        return batch
    at = batch.schema.get_field_index("topics")
    topics: Any = pl.from_arrow(batch.column(at))
    named = topics.list.eval(pl.element().replace(to)).list.unique(maintain_order=True)
    return batch.set_column(at, "topics", named.to_arrow().cast(batch.schema.field(at).type))


def ids_in_texts(events: pa.RecordBatch) -> set[str]:
    """Return candidate topic ids in the texts of events."""
    texts: Any = pl.from_arrow(events.column("text"))
    return set(texts.str.extract_all(_ID).explode().drop_nulls().to_list())


def _with_names_in_text(batch: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    """Return events with the names of topics in their texts in place of ids."""
    at = batch.schema.get_field_index("text")
    texts: Any = pl.from_arrow(batch.column(at))
    texts = texts.str.replace_many(list(names), list(names.values())) if names else texts
    return batch.set_column(at, "text", texts.to_arrow().cast(pa.string()))


def _masked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with credentials masked."""
    topics: Any = pl.from_arrow(batch.column("topic"))
    own = [name for name in topics.unique().drop_nulls().to_list() if is_secret_topic(name)]
    if not own:
        return batch
    rows = topics.is_in(own).arg_true().to_list()
    values = batch.column("value").to_pylist()
    for row in rows:
        record = {"key": batch.column("key")[row].as_py(), "value": values[row]}
        mask_record_row(batch.column("topic")[row].as_py(), record)
        value = record["value"]
        values[row] = value.encode() if isinstance(value, str) else value
    at = batch.schema.get_field_index("value")
    return batch.set_column(at, "value", pa.array(values, pa.binary()))
