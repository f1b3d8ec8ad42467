from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from pathlib import Path
from uuid import UUID

import pytest

from dissector.errors import UsageError
from dissector.values.schemas.registry_entries import add_record
from dissector.values.schemas.schema_files import add_source
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.value_limits import SchemaProblem

LONGS = '{"type": "array", "items": "long"}'
GUID = "63836c98-85e0-4bef-840b-2615e9991c8b"


def test_a_folder_of_schemas(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "orders-value.avsc").write_text(LONGS)
    (inner / "12.avsc").write_text('"string"')
    (inner / f"{GUID}.avsc").write_text('"int"')
    (tmp_path / "events.json").write_text('{"$schema": "...", "type": "object"}')
    (tmp_path / "broken.avsc").write_text("{")
    (tmp_path / "numbers.json").write_text("[1, 2]")
    (tmp_path / "README").write_text("no schema")
    store = SchemaStore()
    add_source(store, str(tmp_path))
    assert [each.kind for each in store.of_subject("orders", is_key=False)] == ["avro"]
    assert [each.kind for each in store.of_subject("events", is_key=False)] == ["json-schema"]
    assert store.of_subject("orders", is_key=True) == []
    named = store.find(12)
    assert named is not None
    assert named.label("any", is_key=True) == "12"
    assert store.find(UUID(GUID)) is not None
    assert [text.split(": ", 1)[0] for text in store.problems] == [str(tmp_path / "broken.avsc")]


def test_protobuf_files_follow_imports_inside_the_source_only(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "common").mkdir(parents=True)
    (tmp_path / "secret.proto").write_text("message Secret { optional int32 id = 1; }")
    (source / "common" / "user.proto").write_text(
        'syntax = "proto3"; package common; import "kind.proto"; message User { Kind kind = 1; }'
    )
    (source / "common" / "kind.proto").write_text(
        'syntax = "proto3"; package common; enum Kind { NONE = 0; BOT = 1; }'
    )
    (source / "orders-value.proto").write_text(
        'syntax = "proto3"; import "common/user.proto"; message Order { common.User user = 1; }'
    )
    (source / "12.proto").write_text(
        'import "../secret.proto"; message M { optional Secret s = 1; }'
    )
    store = SchemaStore()
    add_source(store, str(source))
    (order,) = store.of_subject("orders", is_key=False)
    assert order.decoder.value(bytes.fromhex("0a020801"), 0) == {"user": {"kind": "BOT"}}
    outside = store.find(12)
    assert outside is not None
    with pytest.raises(SchemaProblem, match="unknown type 'Secret'"):
        outside.decoder.value(b"", 0)
    alone = SchemaStore()
    add_source(alone, str(source / "orders-value.proto"))
    assert len(alone) == 1


def test_a_dump_of_a_registry(tmp_path: Path) -> None:
    entries = [
        {"subject": "orders-value", "version": 1, "id": 3, "schema": '"int"'},
        {"subject": "orders-value", "version": 2, "id": 4, "schema": LONGS, "schemaType": "AVRO"},
        {"subject": "copy-value", "version": 1, "id": 4, "schema": LONGS, "guid": GUID},
        {"subject": "doc-value", "version": 1, "id": 5, "schema": "{}", "schemaType": "JSON"},
    ]
    dump = tmp_path / "schemas.json"
    dump.write_text(json.dumps(entries))
    store = SchemaStore()
    add_source(store, str(dump))
    orders = store.find(4)
    assert orders is not None
    assert orders is store.find(UUID(GUID))
    assert orders.label("orders", is_key=False) == "orders-value v2"
    assert orders.label("copy", is_key=False) == "copy-value v1"
    assert [each.text for each in store.of_subject("orders", is_key=False)] == [LONGS, '"int"']
    document = store.find(5)
    assert document is not None
    assert document.kind == "json-schema"


def test_sources_without_schemas_are_refused(tmp_path: Path) -> None:
    store = SchemaStore()
    for name, content, reason in (
        ("a.avsc", b"{", "not JSON"),
        ("b.json", b'{"name": 5}', "neither a schema nor a dump"),
        ("c.json", b"\xff", "not UTF-8"),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        with pytest.raises(UsageError, match=f"{name}: .*{reason}"):
            add_source(store, str(file))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="empty: no schema in it"):
        add_source(store, str(empty))
    (empty / "a.avsc").write_bytes(b"{")
    with pytest.raises(UsageError, match=r"empty: no schema in it \(.*a\.avsc: not JSON"):
        add_source(store, str(empty))
    with pytest.raises(UsageError, match="cannot be read"):
        add_source(store, str(tmp_path / "none.avsc"))


def test_pipes_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    """Nobody may ever write into them."""
    os.mkfifo(tmp_path / "a.avsc")
    (tmp_path / "b.proto").symlink_to(tmp_path / "a.avsc")
    (tmp_path / "c.avsc").write_bytes(BOM_UTF8 + LONGS.encode())
    store = SchemaStore()
    add_source(store, str(tmp_path))
    assert len(store) == 1
    assert not store.problems


def test_records_of_a_registry() -> None:
    store = SchemaStore()
    user = '{"type": "record", "name": "User", "fields": [{"name": "id", "type": "int"}]}'
    order = '{"type": "record", "name": "O", "fields": [{"name": "user", "type": "User"}]}'
    values = [
        {"subject": "user", "version": 1, "id": 1, "schema": user},
        {
            "subject": "orders-value",
            "version": 1,
            "id": 2,
            "schema": order,
            "references": [{"name": "User", "subject": "user", "version": 1}],
            "deleted": True,
        },
        {"subject": "broken", "version": 1, "id": 3, "schema": "{"},
        {"subject": "new", "version": 1, "id": 4, "schema": "x", "schemaType": "XML"},
    ]
    assert all(add_record(store, json.dumps(each).encode()) for each in values)
    for other in (None, b"", b"{", b'{"subject": "s"}', b'{"schema": 5, "id": 1}', b"[]"):
        assert not add_record(store, other)
    found = store.find(2)
    assert found is not None
    assert found.decoder.value(b"\x0a", 0) == {"user": {"id": 5}}
    for number, reason in ((3, "not JSON"), (4, "type 'XML'")):
        broken = store.find(number)
        assert broken is not None
        for _ in range(2):
            with pytest.raises(SchemaProblem, match=reason):
                broken.decoder.value(b"", 0)
