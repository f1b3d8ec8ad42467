"""Numbers and names are filled into rows when the whole collection is known."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from dissector.protocol.embedded.log_records.cluster_metadata import UserScramCredentialRecord
from dissector.protocol.embedded.sasl_tokens import MASK
from pipeline.tables.finalize import RowFinisher
from pipeline.tables.shared_facts import DeferredNames, merge_facts
from pipeline.tables.table_schemas import FACTS_SCHEMA, SCHEMAS
from tests.default_frames import body

ONE, OTHER = UUID(int=1 << 100), UUID(int=2 << 100)


def batch(name: str, *rows: dict[str, Any]) -> pa.RecordBatch:
    schema = SCHEMAS[name]
    return pa.RecordBatch.from_pylist([dict.fromkeys(schema.names) | row for row in rows], schema)


def test_connections_are_numbered_by_their_first_packets() -> None:
    finish = RowFinisher(np.array([0, 7, 9, 100]))
    rows = batch("problems", {"connection": 9}, {"connection": None}, {"connection": 0})
    assert finish("problems", rows).column("connection").to_pylist() == [2, None, 0]
    rows = batch("fields", {"connection": 100}, {"connection": 7})
    assert finish("fields", rows).column("connection").to_pylist() == [3, 1]


def test_topic_ids_have_their_names_and_are_reported_once() -> None:
    names = DeferredNames()
    names.learn({OTHER: "known"})
    marked = [names.name(each) for each in ("plain", ONE, OTHER)]
    assert marked == ["plain", f"\0{ONE}", "known"]
    rows = batch(
        "exchanges",
        {"connection": 0, "topics": marked},
        {"connection": 0, "topics": ["late", f"\0{ONE}"]},
        {"connection": 0, "topics": []},
    )
    for names_of_ids, expected in (({str(ONE): "late"}, "late"), ({}, str(ONE))):
        found = (
            RowFinisher(np.array([0]), names_of_ids)("exchanges", rows).column("topics").to_pylist()
        )
        assert found == [["plain", expected, "known"], list(dict.fromkeys(["late", expected])), []]


def test_records_have_the_names_of_their_topics() -> None:
    rows = batch(
        "records",
        {"connection": 0, "topic_id": str(ONE)},
        {"connection": 0, "topic_id": str(OTHER)},
        {"connection": 0, "topic": "plain"},
        {"connection": 0, "topic": "here", "topic_id": str(ONE)},
    )
    found = RowFinisher(np.array([0]), {str(ONE): "late"})("records", rows)
    assert found.column("topic").to_pylist() == ["late", None, "plain", "here"]
    assert found.schema == SCHEMAS["records"]


def test_credentials_are_masked_even_with_late_names() -> None:
    credential = {"name": "a", "mechanism": 1, "salt": b"s", "stored_key": b"k"}
    value = b"\x01\x0b\x00" + body(UserScramCredentialRecord, 0, **credential)
    row = {"connection": 0, "value": value}
    rows = batch("records", row | {"topic_id": str(ONE)}, row | {"topic": "plain"})
    names = {str(ONE): "__cluster_metadata"}
    hidden = RowFinisher(np.array([0]), names)("records", rows)
    assert hidden.column("value").to_pylist() == [MASK.encode(), value]
    assert hidden.schema == SCHEMAS["records"]
    shown = RowFinisher(np.array([0]), names, show_secrets=True)("records", rows)
    assert shown.column("value").to_pylist() == [value, value]


def test_names_may_follow_finished_rows() -> None:
    credential = {"name": "a", "mechanism": 1, "salt": b"s", "stored_key": b"k"}
    value = b"\x01\x0b\x00" + body(UserScramCredentialRecord, 0, **credential)
    first = RowFinisher(np.array([0]), {str(OTHER): "known"})
    later = RowFinisher(None, {str(ONE): "__cluster_metadata"})
    records = batch("records", {"connection": 0, "value": value, "topic_id": str(ONE)})
    exchanges = batch("exchanges", {"connection": 0, "topics": [f"\0{ONE}", f"\0{OTHER}"]})
    for name, rows in (("records", records), ("exchanges", exchanges)):
        assert first.unnamed_topic_ids(name, rows) == {str(ONE)}
        assert later.unnamed_topic_ids(name, rows) == (
            {str(OTHER)} if name == "exchanges" else set()
        )
    assert first.unnamed_topic_ids("problems", batch("problems", {})) == set()
    written = first("records", records)
    assert written.column("value").to_pylist() == [value]
    for _ in range(2):
        written = later.fill_in_names("records", written)
        assert written.column("topic").to_pylist() == ["__cluster_metadata"]
        assert written.column("value").to_pylist() == [MASK.encode()]
    written = later.fill_in_names("exchanges", first("exchanges", exchanges))
    assert written.column("topics").to_pylist() == [["__cluster_metadata", "known"]]


def test_the_first_name_of_a_topic_id_is_kept() -> None:
    def facts(name: str, packet: int) -> pa.RecordBatch:
        row = {"topic_id": str(ONE), "name": name, "packet": packet}
        return pa.RecordBatch.from_pylist([row], FACTS_SCHEMA)

    assert merge_facts([facts("b", 7), facts("a", 9), facts("c", 8)]) == {str(ONE): "b"}
    assert merge_facts([]) == {}


def test_only_new_names_are_reported() -> None:
    names = DeferredNames()
    names.learn({ONE: "a"})
    (first,) = names.new_names(5)
    assert first.to_pylist() == [{"topic_id": str(ONE), "name": "a", "packet": 5}]
    assert list(names.new_names(6)) == []
    names.learn({ONE: "b", OTHER: "c"})
    (second,) = names.new_names(7)
    assert {row["name"] for row in second.to_pylist()} == {"c"}
    assert names.can_read_ahead
    assert (names.find_name(ONE), names.find_name(UUID(int=3))) == ("a", None)
