"""`kafkashark serve` as a process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.cli import main
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.other_members import BY_EPOCHS, NAME, beat_alone, join
from tests.serve.support.raw_client import RawClient
from tests.serve.support.serve_process import serving
from tests.waiting import PATIENCE_S

CAPTURE = str(SHIPPED / "kafka4-librdkafka-group.pcap")


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out


def test_a_served_capture_ends_with_its_report() -> None:
    with serving(CAPTURE, "--strict") as (process, address):
        with RawClient(address) as client:
            assert client.ask("Metadata", 9, topics=[]).brokers
        status, out = _end(process)
    assert status == 0
    assert out.startswith("1 requests on 1 connections, 0 misses\n")


@pytest.mark.long
def test_clients_are_judged_with_conform() -> None:
    with serving(CAPTURE, "--conform") as (process, address):
        with RawClient(address) as client:
            assert client.ask("ApiVersions", 3).api_keys, "its software is unknown"
        status, out = _end(process)
    assert status == 1
    assert "error V03 Invalid name or version of the client software" in out


@pytest.mark.long
def test_a_miss_fails_if_strict() -> None:
    with serving(CAPTURE, "--strict") as (process, address):
        with RawClient(address) as client:
            assert client.ask("DescribeAcls", 1).error_code == -1
        status, out = _end(process)
    assert status == 1
    assert "  DescribeAcls v1 from raw: the capture lacks an equivalent request\n" in out


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "act", "client_id", "line"),
    [
        (NAME, lambda client: join(client, "roundrobin"), "raw", "JoinGroup v5 from raw: the"),
        (
            BY_EPOCHS,
            beat_alone,
            "rdkafka-848-second",
            "ConsumerGroupHeartbeat v1 from rdkafka-848-second: the capture lacks an assignment",
        ),
    ],
    ids=["another assignor", "alone"],
)
def test_a_member_without_records_fails_if_strict(
    name: str, act: Callable[[RawClient], object], client_id: str, line: str
) -> None:
    with serving(str(SHIPPED / f"{name}.pcap"), "--strict") as (process, address):
        with RawClient(address, client_id) as client:
            act(client)
        status, out = _end(process)
    assert status == 1
    assert f"  {line}" in out


@pytest.mark.long
def test_faults_are_options() -> None:
    faults = ("--fault", "api == Metadata", "close,times:1", "--fault", "api == Fetch", "close")
    with serving(CAPTURE, *faults) as (process, address):
        for is_closed in (True, False):
            with RawClient(address) as client:
                client.send_request("Metadata", 9, topics=[])
                assert client.is_closed() is is_closed
        _, out = _end(process)
    assert "Injected faults\ncount  fault\n    1  'api == Metadata' close,times:1\n" in out


def test_wrong_usage_is_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, expected in (
        (["--latency", "slow"], "--latency takes"),
        (["--fault", "api == Fetch"], "--fault takes 'FILTER' ERROR"),
        (["--fault", "api == Fetch", "--strict"], "--fault: expected 2 arguments"),
        (["--tls-key", "key.pem"], "TLS requires a certificate"),
        (["--listen", "nowhere"], "nowhere"),
        (["--sasl-secret", str(tmp_path / "none")], "the password cannot be read"),
    ):
        assert main(["serve", CAPTURE, *words]) == 2
        error = capsys.readouterr().err
        assert expected in error
        assert error.count("\n") == 1
