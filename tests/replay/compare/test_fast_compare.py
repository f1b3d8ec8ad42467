"""The fast comparison agrees with the general one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cluster.conversion.resource_names import NameMap
from cluster.fields.field_layout import Scope
from cluster.fields.roles import layout_of
from dissector.protocol.apis import KEYS, all_apis, api
from dissector.protocol.records import Record, new_batch
from dissector.protocol.schema import Schema
from replay.compare.body_diff import BodyDiff
from replay.compare.comparison_policy import COMPARED_ROLES
from replay.compare.fast_compare import are_equal
from replay.mapping.id_map import IdMap
from replay.model.offset_ranges import Range
from tests.example_counts import examples
from tests.message_strategies import values
from tests.replay.support.scripted_broker import filled

APIS = all_apis()


def _produced(**partition: Any) -> Any:
    said = {"responses": [{"name": "t", "partition_responses": [{"index": 1, **partition}]}]}
    return filled(_schema("Produce").fields, 12, said)


def _schema(name: str) -> Schema:
    found = api(KEYS[name])
    assert found is not None
    return found.response


def _are_equal(captured: Any, live: Any, ids: IdMap) -> bool:
    return are_equal(_schema("Produce"), 12, captured, live, Scope(), ids)


def test_mapped_offsets_are_equal() -> None:
    ids = IdMap()
    ids.offsets.learn("t", 1, 5, 8, 1)
    assert _are_equal(_produced(base_offset=5), _produced(base_offset=8), ids)
    assert not _are_equal(_produced(base_offset=5), _produced(base_offset=5), ids)
    assert not _are_equal(_produced(base_offset=5), _produced(base_offset=9), ids)


def test_other_errors_names_or_array_lengths_are_unequal() -> None:
    ids = IdMap(names=NameMap(prefix="p-"))
    captured, live = _produced(), _produced()
    live.responses[0].name = "q-t"
    assert not _are_equal(captured, live, ids)
    live.responses[0].name = "p-t"
    assert _are_equal(captured, live, ids)
    live.responses[0].partition_responses[0].error_code = 3
    assert not _are_equal(captured, live, ids)
    live.responses[0].partition_responses = []
    assert not _are_equal(captured, live, ids)


def test_topics_by_id_with_equal_records_are_equal() -> None:
    ids, here, there = IdMap(names=NameMap(prefix="p-")), UUID(int=1), UUID(int=2)
    ids.captured_topics.learn({here: "t"})
    ids.live_topics.learn({there: "p-t"})
    batch = new_batch([Record(value=b"v")])
    other = new_batch([Record(value=b"w")]).to_bytes()
    captured, live = _fetched(here, batch.to_bytes()), _fetched(there, batch.to_bytes())
    bodies = BodyDiff(ids)
    arguments = Scope(), ids, bodies.have_equal_records
    assert are_equal(_schema("Fetch"), 13, captured, live, *arguments)
    (returned,) = bodies.returned
    assert (returned.topic, returned.partition, list(returned.live)) == ("t", 1, [Range(0, 1)])
    for unequal in (
        _fetched(UUID(int=3), batch.to_bytes()),
        _fetched(there, other),
        _fetched(there, b""),
    ):
        assert not are_equal(_schema("Fetch"), 13, captured, unequal, *arguments)


def _fetched(topic_id: UUID, records: bytes) -> Any:
    partition = {"partition_index": 1, "high_watermark": 1, "records": records}
    said = {"responses": [{"topic_id": topic_id, "partitions": [partition]}]}
    return filled(_schema("Fetch").fields, 13, said)


@settings(max_examples=examples(150))
@given(st.data())
def test_equal_responses_have_no_differences(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(APIS)).response
    version = data.draw(st.sampled_from(list(schema.versions)))
    captured = data.draw(values(schema, version, unknown=False))
    live = data.draw(st.just(captured) | values(schema, version, unknown=False))
    ids = IdMap(names=data.draw(st.sampled_from([NameMap(), NameMap(prefix="p-")])))
    equal = BodyDiff(ids).have_equal_records
    assume(are_equal(schema, version, captured, live, Scope(), ids, equal))
    bodies = BodyDiff(ids)
    node = layout_of(schema, version, COMPARED_ROLES)
    bodies.compare((node, node), captured, live, Scope())
    assert bodies.differences == []
    assert not bodies.reasons
