"""The fixture `kafka_cassette` in a run of pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.other_members import BY_EPOCHS

ROOT = SHIPPED.parent
CAPTURE = SHIPPED / "kafka4-librdkafka-group.pcap"
EPOCHS = SHIPPED / f"{BY_EPOCHS}.pcap"
TESTS = """
    from tests.serve.support.other_members import beat_alone, join
    from tests.serve.support.raw_client import RawClient

    def ask(cassette, api, version, **values):
        with RawClient(cassette.bootstrap) as client:
            return client.ask(api, version, **values)

    def test_served(kafka_cassette):
        cassette = kafka_cassette("orders.pcap")
        assert ask(cassette, "Metadata", 9, topics=[]).brokers
        assert [each.api for each in cassette.requests] == ["Metadata"]
        assert not cassette.misses

    def test_missing(kafka_cassette):
        ask(kafka_cassette("orders.pcap"), "DescribeAcls", 1)

    def test_allowed(kafka_cassette):
        cassette = kafka_cassette("orders.pcap", strict=False)
        ask(cassette, "DescribeAcls", 1)
        assert [each.api for each in cassette.misses] == ["DescribeAcls"]

    def test_another_assignor(kafka_cassette):
        with RawClient(kafka_cassette("orders.pcap").bootstrap) as client:
            join(client, "roundrobin")

    def test_alone(kafka_cassette):
        with RawClient(kafka_cassette("epochs.pcap").bootstrap, "rdkafka-848-second") as client:
            beat_alone(client)
"""


@pytest.mark.long
def test_tests_get_cassettes_and_misses_fail_them(tmp_path: Path) -> None:
    (tmp_path / "orders.pcap").write_bytes(CAPTURE.read_bytes())
    (tmp_path / "epochs.pcap").write_bytes(EPOCHS.read_bytes())
    (tmp_path / "test_orders.py").write_text(textwrap.dedent(TESTS))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "serve.pytest_plugin", tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path.parent,
    )
    assert "5 passed, 3 errors" in done.stdout, done.stdout + done.stderr
    assert "DescribeAcls v1 from raw: the capture lacks an equivalent request" in done.stdout
    assert "the captured one is range" in done.stdout
    assert f"lacks an assignment of group {BY_EPOCHS}.group" in done.stdout


def test_pytest_finds_the_plugins() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = project["project"]["entry-points"]["pytest11"]
    assert found == {
        "kafkashark": "serve.pytest_plugin",
        "kafkashark_record": "record.recording_plugin",
    }


def test_the_plugin_loads_its_packages_on_first_use() -> None:
    script = "import sys, serve.pytest_plugin; print([m for m in sys.modules if 'dissector' in m])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr
