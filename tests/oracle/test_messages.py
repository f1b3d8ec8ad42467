"""Every version of every API that Kafka and we know: drawn bodies, and headers."""

from __future__ import annotations

from collections import Counter

import pytest

from dissector.protocol.apis import KEYS, NAMES, Kind, all_apis, api
from dissector.protocol.headers import RequestHeader, ResponseHeader
from dissector.protocol.schema import Schema
from tests.oracle import drawn
from tests.oracle.compare import Subject
from tests.oracle.kafka import Oracle

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

KINDS: tuple[Kind, ...] = ("request", "response")
Count = Counter[tuple[str, str]]

OTHER_NAMES = {
    # Kafka 4.0 renamed the fields of the request; we keep the names that 3.9 had.
    ("4.x", "Vote"): {
        "candidateEpoch": "replicaEpoch",
        "candidateId": "replicaId",
        "candidateDirectoryId": "replicaDirectoryId",
    },
    # Was ListClientMetricsResources before KIP-1142.
    ("3.9.x", "ListConfigResources"): {
        "configResources": "clientMetricsResources",
        "resourceName": "name",
    },
}
"""Fields that one release names otherwise; their bytes are the same."""

OTHER_BYTES = {
    # Kafka 4.0 gave v0 a leader epoch without a new version: no broker had spoken it before.
    ("3.9.x", "ReadShareGroupStateSummary", "response"),
}
"""What one release lays out otherwise than later ones do under the same version."""

NOT_RELEASED = {("GetReplicaLogInfo", kind, 0) for kind in KINDS}
"""What is in Kafka's trunk, and in neither release."""


def subject(oracle: Oracle, key: int, kind: Kind) -> Subject:
    found = api(key)
    assert found is not None
    names = OTHER_NAMES.get((oracle.line, found.name), {})
    return Subject(found.schema(kind), {"api_key": key, "kind": kind}, names)


@pytest.mark.parametrize("name", NAMES.values())
def test_drawn_bodies(oracles: list[Oracle], compared: Count, name: str) -> None:
    for kind in KINDS:
        subjects = [(oracle, subject(oracle, KEYS[name], kind)) for oracle in oracles]
        asked = [
            (oracle, each, each.versions(oracle))
            for oracle, each in subjects
            if (oracle.line, name, kind) not in OTHER_BYTES
        ]
        schema = subjects[0][1].schema
        for version in schema.versions:
            for body in drawn.bodies(schema, version):
                data = schema.codec(version).build(body)
                for oracle, each, known in asked:
                    if version in known:
                        each.agrees(oracle, version, body, data)
                        compared["drawn bodies of APIs", oracle.jars.version] += 1
            for oracle, _, known in asked:
                compared["message versions of APIs", oracle.jars.version] += version in known


def test_each_version_is_known_to_a_release_and_to_us(oracles: list[Oracle]) -> None:
    unknown = set()
    for found in all_apis():
        for kind in KINDS:
            schema = found.schema(kind)
            known = {
                version
                for oracle in oracles
                for version in subject(oracle, found.key, kind).versions(oracle)
            }
            assert known <= set(schema.versions), found.name
            unknown |= {(found.name, kind, v) for v in set(schema.versions) - known}
    assert unknown == NOT_RELEASED


@pytest.mark.parametrize(
    ("name", "schema"), [("RequestHeader", RequestHeader), ("ResponseHeader", ResponseHeader)]
)
def test_headers(oracles: list[Oracle], compared: Count, name: str, schema: Schema) -> None:
    for oracle in oracles:
        each = Subject(schema, {"name": f"{name}Data"})
        for version in each.versions(oracle):
            for body in drawn.bodies(schema, version):
                each.agrees(oracle, version, body, schema.codec(version).build(body))
                compared["drawn headers", oracle.jars.version] += 1
