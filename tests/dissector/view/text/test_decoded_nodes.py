"""Keys and values that a schema or their own text decodes, in the tree of a message."""

from __future__ import annotations

import json
from contextvars import copy_context
from typing import Any

from dissector.protocol.embedded.secrecy.hidden_records import hide_records
from dissector.protocol.messages import decode_request
from dissector.protocol.records import Record, build_records, new_batch
from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from dissector.view.text.detail_tree import detail_tree
from tests.default_frames import request

FIELDS = [
    {"name": "id", "type": "int"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "note", "type": ["null", "string"]},
]
SCHEMA = {"type": "record", "name": "Order", "fields": FIELDS}
PREFIX = b"\0\0\0\0\7"

RECORDS = [
    Record(key=b"k1", value=PREFIX + b"\x0e\x04\x02a\x02b\0\0"),
    Record(key=b'{"a b":[1],"n":{}}', value=PREFIX + b"\x0e\x7f", headers=(("h", None),)),
    Record(key=None, value=b'"text"'),
    Record(key=b"\0\0\0\0\x63x", value=b"plain"),
    Record(key=b"[1]", value=b"12"),
]

TIME = "1970-01-01 00:00:00.000Z"
SHOWN = f"""\
[0]: offset 0, {TIME}, key "k1", value 13 bytes 00000000070e04026102620000
  value as avro: orders-value v1, 3 fields
    id: 7 [5..6)
    tags: 2 items [6..12)
      [0]: "a" [7..9)
      [1]: "b" [9..11)
    note: null [12..13)
[1]: offset 1, {TIME}, key '{{"a b":[1],"n":{{}}}}', value 7 bytes 00000000070e7f
  header "h": null
  key as json: 2 fields
    a b: 1 item [7..10)
      [0]: 1 [8..9)
    n: 0 fields [15..17)
  ! value as avro orders-value v1: it ends before its schema does
[2]: offset 2, {TIME}, key null, value '"text"'
[3]: offset 3, {TIME}, key 6 bytes 000000006378, value "plain"
  ! key: the schema with id 99 is unknown
[4]: offset 4, {TIME}, key "[1]", value "12"
  key as json: 1 item
    [0]: 1 [1..2)"""


def record_lines(topic: str, records: list[Record], **options: Any) -> list[str]:
    """Return the lines of the records of a Produce request."""
    data = build_records([new_batch(records)])
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    message = decode_request(request(0, 3, 7, acks=-1, timeout_ms=500, topic_data=topics)[4:])
    lines = detail_tree(message, **options)
    first = next(n for n, line in enumerate(lines) if "[0]: offset 0" in line)
    indent = len(lines[first]) - len(lines[first].lstrip())
    return [line[indent:] for line in lines[first:]]


def test_values_have_their_members_and_places_or_the_reason_why_not() -> None:
    store = SchemaStore()
    entry = {"id": 7, "subject": "orders-value", "version": 1, "schema": json.dumps(SCHEMA)}
    add_entry(store, entry)
    reader = ValueReader(store, TopicFormats())
    lines = record_lines(
        "orders",
        RECORDS,
        read_value=lambda record, is_key: reader.read_record(record, is_key=is_key),
    )
    assert lines == SHOWN.split("\n")


def test_settings_are_masked_where_they_hold_a_secret() -> None:
    safe, secret = (
        json.dumps({"properties": {name: "abc123xyz"}}).encode()
        for name in ("tasks.max", "database.password")
    )
    records = [Record(key=b"connector-a", value=each) for each in (safe, secret)]
    for topic, show_secrets, masked in (
        ("connect-configs", False, [False, True]),
        ("connect-configs", True, [False, False]),
        ("orders", False, [False, False]),
    ):
        lines = record_lines(topic, records, show_secrets=show_secrets)
        assert [line.endswith("value ***") for line in lines] == masked, topic


def test_hidden_keys_and_values_are_masked_unless_they_are_null() -> None:
    def shown() -> list[str]:
        hide_records(True)
        return record_lines("orders", [Record(key=b"k", value=b"v"), Record()])

    first, second = copy_context().run(shown)
    assert first.endswith("key ***, value ***")
    assert second.endswith("key null, value ***")
