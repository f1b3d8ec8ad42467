"""Every version of every API common to Kafka and us: drawn bodies, and headers."""

from __future__ import annotations

from collections import Counter

import pytest

from dissector.protocol.api import Kind
from dissector.protocol.apis import KEYS, NAMES, all_apis, api
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.schema import Schema, Versions
from tests.oracle import drawn
from tests.oracle.kafka_classes import Oracle, OracleError
from tests.oracle.release_comparison import Subject

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

KINDS: tuple[Kind, ...] = ("request", "response")
Count = Counter[tuple[str, str]]

OTHER_NAMES = {
    # Kafka 4.0 renamed the fields of the request.
    ("3.9.x", "Vote"): {
        "replicaEpoch": "candidateEpoch",
        "replicaId": "candidateId",
        "replicaDirectoryId": "candidateDirectoryId",
    },
    # Kafka 4.4 renamed it.
    ("3.9.x", "TxnOffsetCommit"): {"generationIdOrMemberEpoch": "generationId"},
    # Was ListClientMetricsResources before KIP-1142.
    ("3.9.x", "ListConfigResources"): {
        "configResources": "clientMetricsResources",
        "resourceName": "name",
    },
}
"""Fields that one release names otherwise; their bytes are the same."""

OTHER_BYTES = {
    # Kafka 4.0 added a leader epoch to v0 without a new version, as no broker had used it before.
    ("3.9.x", "ReadShareGroupStateSummary", "response"),
}
"""What one release lays out otherwise than later ones do under the same version."""

ReleaseVersions = tuple[Oracle, Subject, Versions]


def releases_of(oracles: list[Oracle], key: int, kind: Kind) -> list[ReleaseVersions]:
    """Return the releases that have a message, with their versions."""
    found = api(key)
    assert found is not None
    subjects = [
        (
            oracle,
            Subject(
                found.schema(kind),
                {"api_key": key, "kind": kind},
                OTHER_NAMES.get((oracle.line, found.name), {}),
            ),
        )
        for oracle in oracles
        if (oracle.line, found.name, kind) not in OTHER_BYTES
    ]
    return [(oracle, each, each.versions(oracle)) for oracle, each in subjects]


@pytest.mark.parametrize(("line", "name", "kind"), OTHER_BYTES)
def test_listed_differences_exist(oracles: list[Oracle], line: str, name: str, kind: Kind) -> None:
    found = api(KEYS[name])
    assert found is not None
    schema = found.schema(kind)
    each = Subject(schema, {"api_key": KEYS[name], "kind": kind})
    body = drawn.full(schema, 0)
    data = schema.codec(0).build(body)
    for oracle in oracles:
        if oracle.line == line:
            with pytest.raises((AssertionError, OracleError)):
                each.assert_agrees(oracle, 0, body, data)


@pytest.mark.parametrize("name", NAMES.values())
def test_drawn_bodies(oracles: list[Oracle], compared: Count, name: str) -> None:
    for kind in KINDS:
        releases = releases_of(oracles, KEYS[name], kind)
        schema = releases[0][1].schema
        for version in schema.versions:
            here = [(oracle, each) for oracle, each, known in releases if version in known]
            for oracle, _ in here:
                compared["message versions of APIs", oracle.jars.version] += 1
            for body in drawn.bodies(schema, version):
                data = schema.codec(version).build(body)
                for oracle, each in here:
                    each.assert_agrees(oracle, version, body, data)
                    compared["drawn bodies of APIs", oracle.jars.version] += 1


def test_each_version_is_in_a_release_and_declared(oracles: list[Oracle]) -> None:
    unknown = set()
    for found in all_apis():
        for kind in KINDS:
            schema = found.schema(kind)
            known = {
                version
                for _, _, versions in releases_of(oracles, found.key, kind)
                for version in versions
            }
            assert known <= set(schema.versions), found.name
            unknown |= {(found.name, kind, v) for v in set(schema.versions) - known}
    assert unknown == set()


def test_header_versions(oracles: list[Oracle], compared: Count) -> None:
    for oracle in oracles:
        for found in all_apis():
            for version in oracle.versions(api_key=found.key, kind="request"):
                headers = oracle.ask(task="headers", api_key=found.key, version=version)
                assert headers == {
                    "request": request_header_version(found.key, version),
                    "response": response_header_version(found.key, version),
                }, f"{found.name} v{version} in Kafka {oracle.jars.version}"
                compared["header versions", oracle.jars.version] += 1


@pytest.mark.parametrize(
    ("name", "schema"), [("RequestHeader", RequestHeader), ("ResponseHeader", ResponseHeader)]
)
def test_headers(oracles: list[Oracle], compared: Count, name: str, schema: Schema) -> None:
    for oracle in oracles:
        each = Subject(schema, {"name": f"{name}Data"})
        for version in each.versions(oracle):
            for body in drawn.bodies(schema, version):
                each.assert_agrees(oracle, version, body, schema.codec(version).build(body))
                compared["drawn headers", oracle.jars.version] += 1
