"""Duplicate items in the lists of a message."""

from __future__ import annotations

import pytest

from conform.evidence.duplicate_items import find_duplicates
from dissector.protocol.apis import all_apis
from dissector.protocol.schema import Field, Schema

SCHEMAS = [
    pytest.param(schema, id=f"{api.name} {side}")
    for api in all_apis()
    for side, schema in (("request", api.request), ("response", api.response))
    if schema is not None
]


def struct(fields: tuple[Field, ...], version: int) -> dict[str, object]:
    """Return a struct with two equal items in each list."""
    return {each.name: value(each, version) for each in fields if version in each.versions}


def value(each: Field, version: int) -> object:
    item: object = struct(each.fields, version) if each.fields else "a"
    return [item, item] if each.type.startswith("[]") else item


@pytest.mark.thinned(4)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_declaration_can_be_searched(schema: Schema) -> None:
    for version in schema.versions:
        for path, _ in find_duplicates(schema, version, struct(schema.fields, version)):
            assert path.endswith("]")


def test_a_duplicate_item_is_found() -> None:
    (topology,) = (api.request for api in all_apis() if api.key == 93)
    assert topology is not None
    body = struct(topology.fields, 0)
    paths = {path for path, _ in find_duplicates(topology, 0, body)}
    assert "topology_description.subtopologies[1]" in paths
    assert "topology_description.global_stores[1]" not in paths
