"""Generated functions for a version find the same places as the general walk."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.fields.field_layout import Scope
from cluster.fields.roles import value_walk, walk
from dissector.protocol.apis import KEYS, all_apis, api
from dissector.protocol.field_roles import Role
from tests.default_frames import body
from tests.example_counts import examples
from tests.message_strategies import values as bodies

APIS = all_apis()
ROLES = frozenset({Role.ERROR, Role.RECORDS, Role.TOPIC, Role.BROKER_ID})


@settings(max_examples=examples(60))
@given(st.data())
def test_value_walk_gives_the_values_of_all_places(data: st.DataObject) -> None:
    found = data.draw(st.sampled_from(APIS))
    schema = data.draw(st.sampled_from([found.request, found.response]))
    version = data.draw(st.sampled_from(list(schema.versions)))
    drawn = data.draw(bodies(schema, version, unknown=False))
    places = walk(schema, version, drawn, ROLES)
    assert list(value_walk(schema, version, ROLES)(drawn)) == [p.value for p in places if p.value]


def test_scopes_keep_values_from_before_a_replacement() -> None:
    found = api(KEYS["OffsetCommit"])
    assert found is not None
    partition = {"partition_index": 3, "committed_offset": 5, "committed_metadata": None}
    topic = {"name": "t", "partitions": [partition | {"committed_leader_epoch": -1}]}
    data = body(found.request, 8, group_id="g", topics=[topic])
    parsed = found.request.codec(8).parse(data)
    outer = Scope(member="m")
    roles = frozenset({Role.GROUP, Role.TOPIC, Role.OFFSET})
    seen = []
    for place in walk(found.request, 8, parsed, roles, outer):
        scope = place.scope
        seen.append((place.path, place.role, scope.group, scope.topic, scope.partition))
        if place.role is not Role.OFFSET:
            place.replace("new")
    assert seen == [
        ("group_id", Role.GROUP, "g", None, None),
        ("topics[0].name", Role.TOPIC, "g", "t", None),
        ("topics[0].partitions[0].committed_offset", Role.OFFSET, "g", "t", 3),
    ]
    assert parsed.group_id == parsed.topics[0].name == "new"
    assert (outer.member, outer.group) == ("m", None)
