"""Definitions over the built-in declarations: precedence and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dissector.protocol.apis import all_apis, api, api_keys, api_name, source_of
from dissector.protocol.context import current, using
from dissector.protocol.definitions.embedded import overlay_embedded
from dissector.protocol.definitions.schemas import Schemas
from dissector.protocol.embedded.membership.consumer_protocol import ConsumerProtocolSubscription
from dissector.protocol.embedded.own_topics import decode_record
from tests import definitions
from tests.definitions import PING_REQUEST, PING_RESPONSE, written


def field(name: str, type: str = "int32", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "versions": "0+", **more}


def spec(name: str, key: int | None, kind: str, *fields: Any, **more: Any) -> dict[str, Any]:
    base = {"name": name, "type": kind, "validVersions": "0", "flexibleVersions": "0+"}
    keyed = {} if key is None else {"apiKey": key}
    return {**base, **keyed, "fields": list(fields), **more}


def test_a_new_api_key(tmp_path: Path) -> None:
    with using(Schemas.of(definitions.vendor(tmp_path / "vendor"))):
        found = api(600)
        assert found is not None
        assert (found.name, api_name(600), api_keys()["VendorPing"]) == ("VendorPing",) * 2 + (600,)
        assert found.request.versions_text == "0-1"
        assert source_of(600, "response", 1) == "vendor"
        assert all_apis()[-1] is found
    assert (current(), api(600), api_name(600)) == (None, None, "api 600")


def test_fields_whose_names_suggest_a_secret_are_masked(tmp_path: Path) -> None:
    fields = [
        *(field("DbPassword", "string"), field("Tokens", "[]bytes"), field("KeyCount")),
        field("Inner", "[]Inner", fields=[field("AuthBlob", "bytes"), field("City", "string")]),
    ]
    request = spec("VendorRequest", 700, "request", *fields)
    with using(Schemas.of(written(tmp_path, request, spec("VendorResponse", 700, "response")))):
        found = api(700)
        assert found is not None
        secret = {path for path, each in found.request.iter_fields(0) if each.secret}
    assert secret == {"DbPassword", "Tokens", "Inner.AuthBlob"}


def test_declared_secrets_are_masked_in_new_versions(tmp_path: Path) -> None:
    """A newer SaslAuthenticate has its token in another field, with an inconspicuous name."""
    fields = field("Reason", "string"), field("AuthBytes", "bytes"), field("Principal", "string")
    request = spec("SaslAuthenticateRequest", 36, "request", *fields, validVersions="3")
    response = spec("SaslAuthenticateResponse", 36, "response", validVersions="3")
    with using(Schemas.of(written(tmp_path, request, response))):
        found = api(36)
        assert found is not None
        secret = [path for path, each in found.request.iter_fields(3) if each.secret]
        assert secret == ["AuthBytes"]
        assert found.request.iter_fields(2) is not None
        assert [path for path, each in found.request.iter_fields(2)] == ["AuthBytes"]


def test_a_renamed_field_keeps_its_declared_name(tmp_path: Path) -> None:
    fields = field("GroupName", "string"), field("GenerationId"), field("MemberId", "string")
    request = spec("HeartbeatRequest", 12, "request", *fields, flexibleVersions="none")
    with using(Schemas.of(written(tmp_path, request))):
        found = api(12)
    assert found is api(12)


def test_fields_that_changed_places_are_another_message(tmp_path: Path) -> None:
    fields = field("MemberId", "string"), field("GenerationId"), field("GroupId", "string")
    request = spec("HeartbeatRequest", 12, "request", *fields, flexibleVersions="none")
    with using(Schemas.of(written(tmp_path / "fork", request))):
        found = api(12)
        assert found is not None
        assert found.sources == {("request", 0): "fork"}
        names = ["MemberId", "GenerationId", "GroupId"]
        assert [path for path, _ in found.request.iter_fields(0)] == names
        assert [path for path, _ in found.request.iter_fields(1)] == names[::-1]


def test_another_api_of_the_same_key_takes_its_place(tmp_path: Path) -> None:
    request = spec("MineRequest", 12, "request", field("A"))
    response = spec("MineResponse", 12, "response", field("B"))
    with using(Schemas.of(written(tmp_path, request, response))):
        found = api(12)
        assert found is not None
        assert (found.name, found.request.versions_text) == ("Mine", "0")


def test_a_later_source_takes_precedence(tmp_path: Path) -> None:
    newer = {**PING_RESPONSE, "validVersions": "1-2", "fields": [field("Other", "int64")]}
    first = definitions.vendor(tmp_path / "first")
    second = written(tmp_path / "second", PING_REQUEST, newer)
    with using(Schemas.of(first, second)):
        found = api(600)
        assert found is not None
        sources = [found.sources["response", version] for version in (0, 1, 2)]
        assert sources == ["first", "second", "second"]
        assert [len(list(found.response.iter_fields(version))) for version in (0, 1, 2)] == [
            2,
            1,
            1,
        ]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {f"{name}.json": spec(f"{name}Request", 700, "request") for name in "AB"},
            "B.json: request 700 is already defined by {}/A.json, which is used",
        ),
        (
            {"A.json": spec("ARequest", 700, "request", field("X", "int33"))},
            "A.json: ARequest.X: int33 is not a type",
        ),
        (
            {"A.json": spec("ARequest", 700, "request")},
            "A.json: key 700 has a request but no response",
        ),
        (
            {
                "A.json": spec(
                    "AData",
                    None,
                    "data",
                    commonStructs=[
                        {"name": "Loop", "versions": "0+", "fields": [field("Next", "[]Loop")]}
                    ],
                )
            },
            "A.json: Loop.Next: a struct contains itself: Loop > Loop",
        ),
    ],
)
def test_a_wrong_definition_is_a_one_line_error_and_others_are_used(
    tmp_path: Path, files: dict[str, Any], said: str
) -> None:
    definitions.vendor(tmp_path)
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    schemas = Schemas.of(tmp_path)
    assert any(line.endswith(said.format(tmp_path)) for line in schemas.problems)
    assert all(line.startswith(str(tmp_path)) and "\n" not in line for line in schemas.problems)
    with using(schemas):
        assert api_name(600) == "VendorPing"


def test_definitions_of_embedded_messages(tmp_path: Path) -> None:
    newer = spec(
        "ConsumerProtocolSubscription",
        None,
        "data",
        field("Topics", "[]string"),
        field("Extra", "int64"),
        validVersions="4",
        flexibleVersions="none",
    )
    with using(Schemas.of(written(tmp_path / "trunk", newer))):
        over = overlay_embedded("ConsumerProtocolSubscription", ConsumerProtocolSubscription)
    assert over.sources == {4: "trunk"}
    assert over.schema.versions_text == "0-4"
    assert [path for path, _ in over.schema.iter_fields(4)] == ["Topics", "Extra"]


def test_definitions_of_new_records(tmp_path: Path) -> None:
    record = spec("MoonRecord", 300, "metadata", field("Phase", "int8"))
    key = spec("MoonPhaseKey", 90, "coordinator-key", field("Group", "string"))
    key["flexibleVersions"] = "none"
    value = spec("MoonPhaseValue", 90, "coordinator-value", field("Phase", "int8"))
    with using(Schemas.of(written(tmp_path / "trunk", record, key, value))):
        found = decode_record("__cluster_metadata", None, bytes.fromhex("01 ac02 00 07 00"))
        assert found is not None
        assert (found.name, found.value and found.value.value) == ("MoonRecord", {"phase": 7})
        assert [str(each) for each in found.problems] == [
            "value: MoonRecord v0 is decoded by trunk"
        ]
        keyed = decode_record("__consumer_offsets", bytes.fromhex("005a 0001 67"), b"\0\0\5\0")
        assert keyed is not None
        assert keyed.name == "MoonPhase"
        assert (keyed.key and keyed.key.value, keyed.value and keyed.value.value) == (
            {"group": "g"},
            {"phase": 5},
        )
    unknown = decode_record("__cluster_metadata", None, bytes.fromhex("01 ac02 00 07 00"))
    assert unknown is not None
    assert unknown.name == "record type 300"
