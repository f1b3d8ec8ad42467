"""
Schema ids of the captured cluster's registry, replaced by those of the target's.

Messages are rewritten before they are planned: the replay sends, and expects, what the capture
would hold with the registry of the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from cluster.client.pending_request import codecs_of
from cluster.fields.batch_rewriter import batch_headers
from cluster.fields.field_layout import Scope
from cluster.fields.roles import walk
from dissector.engine.reading.capture import Options, Window
from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames
from dissector.errors import DissectorError, UsageError
from dissector.protocol.context import using
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.records import Record, RecordBatch, parse_records
from dissector.protocol.records.layout import CONTROL
from dissector.query.contents.decoded_values import RecordValues
from dissector.query.filtered_capture import Capture
from dissector.values.carriers.schema_ids import with_other_ids
from dissector.values.registry.target_registry import TargetRegistry
from dissector.values.schemas.known_schema import KnownSchema
from dissector.values.value_settings import ValueSettings

_RECORDS = frozenset({Role.RECORDS})
_WRITES = (0,)
"""APIs with records in their requests: Produce."""
_READS = (1, 78)
"""APIs with records in their responses: Fetch, ShareFetch."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class SchemaMapping:
    """
    How schema ids are mapped.

    Attributes:
        url: The registry of the target.
        user: `NAME:PASSWORD` there.
        registers: Whether schemas that it lacks are registered.
        values: Sources of the captured schemas; None: the capture, and those of its options.
        topic_on_target: Returns the target's name of a topic.
    """

    url: str
    user: str = ""
    registers: bool = False
    values: ValueSettings | None = None
    topic_on_target: Callable[[str], str] = str


class SchemaMappedCapture(Capture):
    """A capture with the schema ids of another registry."""

    def __init__(
        self, paths: Sequence[str | Path], options: Options, mapping: SchemaMapping
    ) -> None:
        """
        Begin; registries are asked when a record names a schema.

        Raises:
            UsageError: A URL or a source of schemas can't be used.
        """
        super().__init__(paths, options)
        self._values = RecordValues(self, mapping.values or options.values)
        self._ids = _TargetIds(self._values, mapping)

    def windows(self, *, gleaning: bool = False, checking: bool = True) -> Iterator[Window]:
        """Read the capture, window by window, with other ids."""
        for window in super().windows(gleaning=gleaning, checking=checking):
            self._values.learn(window)
            with using(self.options.schemas):
                table = self._rewritten(window.exchanges)
            yield replace(window, exchanges=table)
            del window, table  # frees their memory before the next window is read

    def problems_of_ids(self) -> list[str]:
        """
        Return lines on ids that stay, of the pass.

        Raises:
            UsageError: The target's registry lacks schemas.
        """
        if self._ids.missing:
            listed = _listed(self._ids.missing, self._ids.labels)
            raise UsageError(
                f"--map-schemas: the registry lacks {listed}; --register-schemas registers them"
            )
        return (
            [f"--map-schemas: no source knows {_listed(self._ids.unknown, {})}: these ids stay"]
            if self._ids.unknown
            else []
        )

    def _rewritten(self, table: Exchanges) -> Exchanges:
        for side, keys in (("request", _WRITES), ("response", _READS)):
            frames: Frames = getattr(table, side)
            rows = np.flatnonzero(np.isin(table.api_key, keys) & (frames.start != NONE))
            changed = {
                row: new for row in rows.tolist() if (new := self._message(table, side, row))
            }
            if changed:
                table = with_frames(table, side, changed)
        return table

    def _message(self, table: Exchanges, side: str, row: int) -> bytes | None:
        """Return a message with other ids; None if nothing changes."""
        key, version = int(table.api_key[row]), int(table.api_version[row])
        frame = table.frame(getattr(table, side), row)
        assert frame is not None
        is_request = side == "request"
        message = decode_request(frame) if is_request else decode_response(frame, key, version)
        if message.body is None or message.schema is None or message.problems:
            return None
        if not self._replace_ids(message):
            return None
        codecs = codecs_of(key, version)
        try:
            codec = codecs.request if is_request else codecs.response
            body: bytes = codec.build(message.body)
        except DissectorError:
            return None
        return frame[: message.body_start] + body

    def _replace_ids(self, message: Message) -> bool:
        assert message.schema is not None
        assert message.body is not None
        is_changed = False
        for each in walk(message.schema, message.api_version or 0, message.body, _RECORDS):
            if each.value:
                new = self._ids.records(each.value, self._topic(each.scope))
                is_changed |= new != each.value
                each.replace(new)
        return is_changed

    def _topic(self, scope: Scope) -> str | None:
        if scope.topic:
            return scope.topic
        return self.names.find_name(scope.topic_id) if isinstance(scope.topic_id, UUID) else None


class _TargetIds:
    """
    The ids of the target, by those of the capture.

    Attributes:
        missing: Ids of schemas that the target lacks, with the number of records.
        unknown: What records name as their schema, of those that no source knows.
        labels: Names of missing ids.
    """

    def __init__(self, values: RecordValues, mapping: SchemaMapping) -> None:
        self.missing: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.labels: dict[str, str] = {}
        self._values = values
        self._mapping = mapping
        self._target = TargetRegistry(mapping.url, mapping.user, registers=mapping.registers)
        self._known: dict[int, int | None] = {}

    def records(self, data: bytes, topic: str | None) -> bytes:
        """Return a `records` field with other ids."""
        out = []
        for header in batch_headers(data):
            batch = data[header.start : header.end]
            is_plain = header.producer is not None and not header.attributes & CONTROL
            out.append(self._batch(batch, topic) if is_plain else batch)
        return b"".join(out)

    def _batch(self, data: bytes, topic: str | None) -> bytes:
        found = parse_records(data)
        batch = found[0] if len(found) == 1 else None
        if not isinstance(batch, RecordBatch) or batch.problems:
            return data
        new = [self._record(each, topic) for each in batch.records]
        if new == batch.records:
            return data
        return replace(batch, payload=None, records=new).to_bytes()

    def _record(self, record: Record, topic: str | None) -> Record:
        for is_key, name in ((True, "key"), (False, "value")):
            data: bytes | None = getattr(record, name)
            if data is None:
                continue
            named = {key: value or b"" for key, value in record.headers}
            found = self._values.reader.read(topic, data, named, is_key=is_key, with_text=False)
            if found.origin is None or found.schema is None:
                if found.problem and found.schema is not None and found.format is None:
                    self.unknown[found.schema] += 1
                continue
            new_id = partial(self._new_id, topic, is_key)
            data, headers = with_other_ids(data, record.headers, new_id, is_key=is_key)
            record = record._replace(headers=tuple(headers))
            record = record._replace(key=data) if is_key else record._replace(value=data)
        return record

    def _new_id(self, topic: str | None, is_key: bool, number: int) -> int | None:
        store = self._values.reader.store
        schema = store.find(number)
        if schema is None:
            return None
        if number not in self._known:
            subjects = self._subjects(schema, topic, is_key)
            self._known[number] = self._target.id_of(schema, subjects, store)
        new = self._known[number]
        if new is None:
            name = f"id {number}"
            self.missing[name] += 1
            self.labels[name] = schema.label(topic, is_key=is_key)
        return number if new is None else new

    def _subjects(self, schema: KnownSchema, topic: str | None, is_key: bool) -> list[str]:
        """Return the subjects where a schema may be, the first of which gets it."""
        end = "-key" if is_key else "-value"
        named = [subject for subject, version in schema.names if version]
        by_topic = [] if topic is None else [self._mapping.topic_on_target(topic) + end]
        is_by_topic = topic is not None and (not named or f"{topic}{end}" in named)
        return by_topic + named if is_by_topic else named + by_topic


def _listed(counts: Counter[str], labels: dict[str, str]) -> str:
    """Return schemas with their numbers of records."""
    texts = [
        f"{name} ({labels[name]}, {count:,} records)"
        if name in labels
        else f"{name} ({count:,} records)"
        for name, count in counts.most_common(_SHOWN)
    ]
    more = len(counts) - len(texts)
    return ", ".join([*texts, *([f"{more:,} more"] if more else [])])


def with_frames(table: Exchanges, side: str, changed: dict[int, bytes]) -> Exchanges:
    """Return a table with other frames in some rows, behind the bytes that it has."""
    frames: Frames = getattr(table, side)
    start, captured, size = frames.start.copy(), frames.captured_bytes.copy(), frames.size.copy()
    at = len(table.data) + len(table.carry_over)
    for row, data in changed.items():
        start[row], captured[row], size[row] = at, len(data), len(data)
        at += len(data)
    added = np.frombuffer(b"".join(changed.values()), np.uint8)
    new: Any = replace(frames, start=start, captured_bytes=captured, size=size)
    return replace(table, carry_over=np.concatenate([table.carry_over, added]), **{side: new})
