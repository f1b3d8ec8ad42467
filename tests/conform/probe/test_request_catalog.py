"""Every API has a harmless request, or none."""

from __future__ import annotations

from cluster.client.auth import Security
from conform.probe.probe_fixtures import NO_ID, Fixtures, Topic
from conform.probe.probe_target import Target
from conform.probe.request_bodies import encode_body
from conform.probe.request_catalog import (
    INTER_BROKER_APIS,
    READ_APIS,
    read_requests,
    write_requests,
)
from dissector.protocol.apis import KEYS, NAMES, api

OWN = Fixtures(Target("127.0.0.1:9092", Security(), 1.0, True))
TOPIC = Topic(OWN.topic_name("t"), NO_ID, 1)
WRITES = write_requests(OWN, TOPIC)


def test_each_api_is_in_one_category() -> None:
    kinds = (READ_APIS, WRITES.keys(), INTER_BROKER_APIS)
    assert set().union(*kinds) == set(NAMES.values())
    assert sum(map(len, kinds)) == len(NAMES)


def test_all_versions_can_be_encoded() -> None:
    requests = {
        name: (lambda _, fields=fields: fields) for name, fields in read_requests("no-such").items()
    }
    for name, fields in {**requests, **WRITES}.items():
        found = api(KEYS[name])
        assert found is not None
        for version in found.request.versions:
            encode_body(found.request, version, fields(version))


def test_requests_name_only_resources_of_the_probe() -> None:
    for name, fields in WRITES.items():
        found = api(KEYS[name])
        assert found is not None
        body = str(fields(found.request.versions.high))
        for each in ("'group_id': '", "'transactional_id': '", "'name': '"):
            for after in body.split(each)[1:]:
                assert after.startswith((OWN.prefix, "range'")), (name, after[:40])


def test_resources_created_by_requests_are_recorded() -> None:
    for version in (0, 7):
        WRITES["CreateTopics"](version)
        assert f"{OWN.prefix}made-{version}" in OWN.topics
    assert f"{OWN.prefix}committed" in OWN.groups
