"""Every declared field for names or contents has a role."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from dissector.protocol import embedded, headers
from dissector.protocol.apis import all_apis
from dissector.protocol.schema import Field, Schema
from dissector.redaction.messages.field_role import Role
from dissector.redaction.messages.redaction_table import ROLE_BY_NAME, ROLE_BY_PATH
from dissector.redaction.messages.role_lookup import needs_role, role_of


def declarations() -> Iterator[tuple[str, Schema]]:
    for api in all_apis():
        yield f"{api.name}.request", api.request
        yield f"{api.name}.response", api.response
    rooms = pkgutil.walk_packages(embedded.__path__, embedded.__name__ + ".")
    for module in [headers, *(importlib.import_module(room.name) for room in rooms)]:
        for name, found in vars(module).items():
            if isinstance(found, Schema):
                yield name, found


def fields(path: str, below: tuple[Field, ...]) -> Iterator[tuple[str, Field]]:
    for each in below:
        yield f"{path}.{each.name}", each
        yield from fields(f"{path}.{each.name}", each.fields)


ALL = [found for path, schema in declarations() for found in fields(path, schema.fields)]


def test_every_field_of_text_bytes_and_ids_has_a_role() -> None:
    bare = [path for path, each in ALL if needs_role(each) and role_of(path, each) is None]
    assert not bare, f"add them to redaction_table.py: {', '.join(bare)}"


def test_every_secret_field_is_replaced() -> None:
    replaced = {Role.SECRET, Role.OPAQUE, Role.EMBEDDED}
    assert {role_of(path, each) for path, each in ALL if each.secret} <= replaced


def test_every_entry_of_the_table_is_used() -> None:
    paths = [path for path, _ in ALL]
    assert [end for end in ROLE_BY_PATH if not any(path.endswith(end) for path in paths)] == []
    names = {each.name for _, each in ALL if needs_role(each)}
    assert set(ROLE_BY_NAME) - names == set()


def test_records_and_producer_ids() -> None:
    roles = {path: role_of(path, each) for path, each in ALL}
    assert roles["Produce.request.topic_data.partition_data.records"] is Role.RECORDS
    assert roles["InitProducerId.response.producer_id"] is Role.PRODUCER_ID
    assert roles["Fetch.response.responses.topic_id"] is Role.ID
    assert roles["Fetch.response.responses.partitions.high_watermark"] is None
