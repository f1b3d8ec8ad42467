"""The key log of a broker decrypts the connections of all its clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.public import open_capture
from tests.broker import artifacts
from tests.broker.replay.support.recording import fresh, record
from tests.broker.server_properties import Shape
from tests.broker.test_kafka_cluster import THREE_VALUES, exchange
from tools.record.scenario import Stage

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_the_agent_on_the_broker_decrypts_librdkafka(tmp_path: Path, protocol: str) -> None:
    """Librdkafka itself writes no key log."""
    try:
        agent = artifacts.key_log_agent()
    except artifacts.MissingError as missing:
        pytest.skip(str(missing))
    keylog = tmp_path / "broker.keylog"
    shape = Shape(
        tls=True,
        properties=(("ssl.enabled.protocols", protocol), ("ssl.protocol", protocol)),
        jvm_options=(f"-javaagent:{agent}={keylog}",),
    )
    with fresh(shape) as cluster:

        def play(stage: Stage) -> None:
            settings = {
                "bootstrap_servers": cluster.bootstrap("SSL"),
                "security_protocol": "SSL",
                "ssl_ca_location": str(cluster.certificate),
            }
            assert exchange(cluster, "encrypted", **settings) == THREE_VALUES

        path = record(cluster, "broker-key-log", tmp_path, play)
    capture = open_capture(path, keylogs=[keylog])
    exchanges = sorted(capture, key=lambda each: (each.request_packet, each.correlation_id))
    answered = [each for each in exchanges if each.status == "answered"]
    assert {"Produce", "Fetch", "JoinGroup"} <= {each.api for each in answered}
    # A closing client does not wait: its last requests may have no response.
    for connection in {each.connection for each in exchanges}:
        statuses = [each.status for each in exchanges if each.connection == connection]
        assert statuses == sorted(statuses, key=["answered", "unanswered"].index)
        assert statuses[0] == "answered"
    # It resets a connection with unsent bytes.
    found = [problem for each in exchanges for problem in each.problems]
    assert [each for each in found if "the connection was reset" not in each.what] == []
