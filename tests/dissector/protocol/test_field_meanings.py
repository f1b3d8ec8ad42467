"""Every declared field has a meaning, and every entry of the table a field."""

from __future__ import annotations

from collections import Counter

import pytest

from dissector.protocol.field_meanings import MEANINGS, UNKNOWN, meaning_of
from dissector.protocol.field_roles import Role, ValueKind
from dissector.protocol.schema import Array, Bytes, Field, Int16, Int32, String, Uuid
from tests.dissector.protocol.declared_fields import FIELDS


def test_every_declared_field_has_a_meaning() -> None:
    bare = [path for path, each in FIELDS if meaning_of(each, path) is UNKNOWN]
    assert not bare, f"add them to field_meanings.py: {', '.join(bare)}"


def test_every_field_of_text_bytes_and_ids_has_a_kind() -> None:
    for path, each in FIELDS:
        kind = meaning_of(each, path).kind
        has_content = each.type.removeprefix("[]") in ("string", "bytes", "records", "uuid")
        assert has_content == (kind not in (None, ValueKind.PRODUCER_ID)), path


def test_every_entry_is_used() -> None:
    used = {id(meaning_of(each, path)) for path, each in FIELDS}
    assert [meaning for meaning in MEANINGS if id(meaning) not in used] == []
    paths = [f".{path}" for path, _ in FIELDS]
    names = {each.name for _, each in FIELDS}
    words = [word for meaning in MEANINGS for word in meaning.fields.split()]
    ends = [word for word in words if "." in word]
    assert [end for end in ends if not any(path.endswith(f".{end}") for path in paths)] == []
    assert {word for word in words if "." not in word and word[0] != "*"} <= names


def test_an_entry_has_one_meaning() -> None:
    """Except a name that is a text in one place and a number in another."""
    times = Counter(word for meaning in MEANINGS for word in meaning.fields.split())
    assert {word for word, count in times.items() if count > 1} == {
        *("mechanism", "source_topic_regex", "source_topics"),
    }


def test_secrets() -> None:
    meanings = {path: meaning_of(each, path) for path, each in FIELDS}
    for path, each in FIELDS:
        assert each.secret == meanings[path].is_secret, path
    replaced = {ValueKind.SECRET, ValueKind.OPAQUE, ValueKind.EMBEDDED}
    assert {each.kind for each in meanings.values() if each.is_secret} == replaced
    assert {each.role for each in meanings.values() if each.is_secret} == {Role.PLAIN, Role.TOKEN}


@pytest.mark.parametrize(
    ("field", "path", "role", "kind"),
    [
        (String("name", entity="topicName"), "", Role.TOPIC, ValueKind.TOPIC),
        (String("name"), "New.request.configs.name", Role.CONFIG_NAME, ValueKind.SETTING),
        (String("leader"), "", Role.MEMBER, ValueKind.MEMBER),
        (Int32("leader", entity="brokerId"), "", Role.BROKER_ID, None),
        (Array("member_id", of=String), "", Role.MEMBER, ValueKind.MEMBER),
        (Int16("acknowledge_error_code"), "", Role.ERROR, None),
        (Uuid("voter_directory_id"), "", Role.DIRECTORY, ValueKind.ID),
        (Int32("epoch"), "", Role.LEADER_EPOCH, None),
        (Int32("epoch"), "StreamsGroupHeartbeat.request.topology.epoch", Role.PLAIN, None),
    ],
)
def test_the_first_match_decides(
    field: Field, path: str, role: Role, kind: ValueKind | None
) -> None:
    assert meaning_of(field, path)[:2] == (role, kind)


@pytest.mark.parametrize("field", [Int32("leader"), String("epoch"), Bytes("x"), Array("topics")])
def test_a_field_of_another_type_has_no_meaning(field: Field) -> None:
    assert meaning_of(field) is UNKNOWN
