"""Request logs of clusters with logins, several nodes and a restart, beside a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cluster.client.auth import Security
from dissector.public import Exchange, dissect, open_capture
from record.public import Recorder
from tests.broker.conftest import StartCluster
from tests.broker.kafka_cluster import Cluster
from tests.broker.record.test_recorded_clusters import RECORDS, SECURE, THREE, produce_and_consume
from tests.broker.server_properties import PASSWORD, USER
from tools.record.request_logs import logging_requests

pytestmark = pytest.mark.broker


def keys(exchanges: Iterable[Exchange]) -> Counter[tuple[Any, ...]]:
    """Return the answered exchanges of clients, without ports."""
    return Counter(
        (each.api, each.api_version, each.correlation_id, each.client_id, each.broker)
        for each in exchanges
        if each.status == "answered"
    )


def logs_of(cluster: Cluster) -> list[str]:
    return [str(node.log) for node in cluster.nodes]


def problems_of(*logs: str) -> list[str]:
    return [each.what for window in open_capture(*logs).windows() for _, each in window.problems]


def test_logins_are_in_the_log(kafka: StartCluster, tmp_path: Path) -> None:
    """What a TLS connection carries, and who: no key log is needed."""
    cluster, file = kafka(SECURE), tmp_path / "recorded.pcapng"
    security = Security.read(
        mechanism="SCRAM-SHA-256",
        username=USER,
        authority_file=cluster.certificate,
        environment={"KAFKASHARK_PASSWORD": PASSWORD},
    )
    to = cluster.bootstrap("SASL_SSL")
    with logging_requests(cluster), Recorder(file, to=to, security=security) as recorder:
        assert len(produce_and_consume(recorder.bootstrap, "logged-secure")) == RECORDS
    logged = [each for each in dissect(*logs_of(cluster)) if each.broker == to]
    assert keys(dissect(str(file))) <= keys(logged)
    by_user = [each for each in logged if each.api == "Produce"]
    assert {(each.account["principal"], each.account["security_protocol"]) for each in by_user} == {
        (f"User:{USER}", "SASL_SSL")
    }
    assert all("leaves out the request" in each for each in problems_of(*logs_of(cluster)))


def test_three_nodes_of_which_one_restarts(kafka: StartCluster, tmp_path: Path) -> None:
    """
    Its log goes on in the same file; other lines of the broker are passed over.

    Requests that were on their way when logging began, and those that change loggers, have no body.
    """
    cluster = kafka(THREE)
    files = [tmp_path / "before.pcapng", tmp_path / "after.pcapng"]
    for file in files:
        with logging_requests(cluster), Recorder(file, to=cluster.bootstrap()) as recorder:
            found = produce_and_consume(recorder.bootstrap, f"logged-{file.stem}")
            assert len(found) == RECORDS
        if file is files[0]:
            cluster.stop_node(cluster.nodes[2])
            cluster.start_node(cluster.nodes[2])
            cluster.wait_until_ready()
    logged = list(dissect(*logs_of(cluster)))
    assert keys(each for file in files for each in dissect(str(file))) <= keys(logged)
    assert {each.broker for each in logged} >= set(cluster.bootstrap().split(","))
    said = {str(problem) for each in logged for problem in each.problems}
    assert all("were not captured" in each for each in said), said
    assert all("leaves out the request" in each for each in problems_of(*logs_of(cluster)))
