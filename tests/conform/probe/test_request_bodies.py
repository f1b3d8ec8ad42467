"""Bodies from the fields of any version."""

from __future__ import annotations

from conform.probe.request_bodies import encode_body
from dissector.protocol.apis import KEYS, all_apis, api
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS


def test_fields_of_other_versions_are_omitted_and_missing_ones_zero() -> None:
    found = api(KEYS["Metadata"])
    assert found is not None
    fields = {"topics": [{"name": "a"}], "allow_auto_topic_creation": False}
    assert encode_body(found.request, 0, fields) == b"\0\0\0\1\0\1a"
    assert encode_body(found.request, 4, fields) == b"\0\0\0\1\0\1a\0"


def test_null_becomes_zero_in_non_nullable_fields() -> None:
    found = api(KEYS["Metadata"])
    assert found is not None
    assert encode_body(found.request, 0, {"topics": None}) == b"\0\0\0\0"
    assert encode_body(found.request, 1, {"topics": None}) == b"\xff\xff\xff\xff"


def test_given_unknown_tags_are_encoded() -> None:
    found = api(KEYS["Metadata"])
    assert found is not None
    topic = {"name": "a", UNKNOWN_TAGS: {99: b"x"}}
    assert b"\1\x63\1x" in encode_body(found.request, 9, {"topics": [topic]})


def test_every_version_of_every_api_can_be_encoded() -> None:
    for each in all_apis():
        for version in each.request.versions:
            encode_body(each.request, version, {})
