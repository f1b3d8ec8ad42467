"""Header versions of every API at every version."""

from __future__ import annotations

from typing import Any

import pytest
from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema

from dissector.errors import DecodeError
from dissector.protocol.apis import NAMES, all_apis, api
from dissector.protocol.headers import (
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    RequestHeader,
    ResponseHeader,
    is_flexible,
    request_header_version,
    response_header_version,
)

EVERY = [(found, version) for found in all_apis() for version in found.request.versions]


def test_the_names_of_the_keys() -> None:
    assert NAMES[PRODUCE] == "Produce"
    assert NAMES[CONTROLLED_SHUTDOWN] == "ControlledShutdown"
    assert NAMES[SASL_HANDSHAKE] == "SaslHandshake"
    assert NAMES[API_VERSIONS] == "ApiVersions"
    assert NAMES[SASL_AUTHENTICATE] == "SaslAuthenticate"


def test_requests() -> None:
    for found, version in EVERY:
        flexible = version in found.request.flexible
        expected = 0 if (found.key, version) == (CONTROLLED_SHUTDOWN, 0) else 1 + flexible
        assert request_header_version(found.key, version) == expected, (found.name, version)


def test_responses() -> None:
    for found, version in EVERY:
        flexible = version in found.response.flexible and found.key != API_VERSIONS
        assert response_header_version(found.key, version) == flexible, (found.name, version)


# Key, version, request header, response header: facts independent of our tables.
FACTS = [
    (0, 8, 1, 0),
    (0, 9, 2, 1),
    (1, 11, 1, 0),
    (1, 12, 2, 1),
    (3, 8, 1, 0),
    (3, 9, 2, 1),
    (7, 0, 0, 0),
    (7, 1, 1, 0),
    (7, 3, 2, 1),
    # SaslHandshake never became flexible.
    (17, 1, 1, 0),
    # The ApiVersions response can be decoded without knowing its version (KIP-511).
    (18, 0, 1, 0),
    (18, 2, 1, 0),
    (18, 3, 2, 0),
    (18, 4, 2, 0),
    (36, 1, 1, 0),
    (36, 2, 2, 1),
    (52, 0, 2, 1),
]


@pytest.mark.parametrize(("key", "version", "request_header", "response_header"), FACTS)
def test_facts(key: int, version: int, request_header: int, response_header: int) -> None:
    assert request_header_version(key, version) == request_header
    assert response_header_version(key, version) == response_header


def _kio(key: int, version: int) -> tuple[Any, Any] | None:
    try:
        return load_request_schema(key, version), load_response_schema(key, version)
    except (UnknownAPIKey, UnknownEntity):
        return None


@pytest.mark.long
def test_kio_agrees() -> None:
    compared = 0
    for found, version in EVERY:
        if entities := _kio(found.key, version):
            request, response = (entity.__header_schema__.__version__ for entity in entities)
            assert request_header_version(found.key, version) == request
            assert response_header_version(found.key, version) == response
            compared += 1
    assert compared >= 302


@pytest.mark.parametrize(
    ("key", "request_header", "response_header"),
    [(0, 2, 1), (3, 2, 1), (18, 2, 0), (17, 1, 0), (7, 2, 1), (52, 2, 1)],
)
def test_an_unknown_version_has_the_header_of_newer_ones(
    key: int, request_header: int, response_header: int
) -> None:
    assert request_header_version(key, 99) == request_header
    assert response_header_version(key, 99) == response_header


def test_a_negative_version_has_the_header_of_old_ones() -> None:
    assert request_header_version(0, -1) == 1
    assert response_header_version(0, -1) == 0


@pytest.mark.parametrize("key", [-1, 95, 999, 32767])
def test_an_unknown_api_has_the_common_header_fields(key: int) -> None:
    assert api(key) is None
    assert request_header_version(key, 0) == 1
    assert response_header_version(key, 0) == 0


def test_is_flexible() -> None:
    produce = api(PRODUCE)
    assert produce is not None
    assert [is_flexible(produce.request, v) for v in (0, 8, 9, 13, 14, 99)] == [False] * 2 + [
        True
    ] * 4


SHARED = {"request_api_key": 3, "request_api_version": 12, "correlation_id": 7}

# Version, value, bytes.
REQUESTS = [
    (0, SHARED, "0003 000c 00000007"),
    (1, SHARED | {"client_id": "rdk"}, "0003 000c 00000007 000372646b"),
    (1, SHARED | {"client_id": None}, "0003 000c 00000007 ffff"),
    # The client id keeps its int16 length in the flexible header.
    (2, SHARED | {"client_id": "rdk"}, "0003 000c 00000007 000372646b 00"),
    (
        2,
        SHARED | {"client_id": "", "unknown_tags": {1: b"\5"}},
        "0003 000c 00000007 0000 01 010105",
    ),
]


@pytest.mark.parametrize(("version", "value", "data"), REQUESTS)
def test_request_header(version: int, value: dict[str, Any], data: str) -> None:
    assert RequestHeader.codec(version).parse(bytes.fromhex(data)) == value
    assert RequestHeader.codec(version).build(value) == bytes.fromhex(data)


@pytest.mark.parametrize(
    ("version", "value", "data"),
    [
        (0, {"correlation_id": -1}, "ffffffff"),
        (1, {"correlation_id": 5}, "00000005 00"),
        (1, {"correlation_id": 5, "unknown_tags": {0: b""}}, "00000005 01 0000"),
    ],
)
def test_response_header(version: int, value: dict[str, Any], data: str) -> None:
    assert ResponseHeader.codec(version).parse(bytes.fromhex(data)) == value
    assert ResponseHeader.codec(version).build(value) == bytes.fromhex(data)


def test_unknown_header_versions_are_errors() -> None:
    with pytest.raises(DecodeError, match=r"known: 0-2"):
        RequestHeader.codec(3)
    with pytest.raises(DecodeError, match=r"known: 0-1"):
        ResponseHeader.codec(2)
