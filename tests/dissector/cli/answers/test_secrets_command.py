"""`secrets`: captures that hold secrets, and those that no longer do."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.corpus import FOLDER as CAPTURES
from tests.dissector.cli.conftest import Run
from tests.dissector.cli.test_secrets import SCENES, capture, orphans
from tests.tcp_captures import WireConnection

ROOT = Path(__file__).parents[4]
SASL = CAPTURES / "kafka4-librdkafka-sasl.pcap"


def test_secrets_have_file_packet_and_field_in_a_line(run: Run) -> None:
    demo = CAPTURES / "demo.pcap"
    result = run("secrets", demo, SASL, CAPTURES / "kafka4-connect.pcap")
    assert result.status == 1
    lines = result.out.splitlines()
    assert lines[0] == (
        f"{SASL}: packet 10: SaslAuthenticate request, auth_bytes: a secret of 23 bytes, 20 in all"
    )
    assert "kafka4-connect.pcap: packet 511: Produce request, record of kafka4-conn" in result.out
    assert "demo.pcap" not in result.out
    assert "2 of 3 captures with secrets; kafkashark export" in result.err


def test_captures_without_secrets_pass_in_silence(run: Run) -> None:
    recordings = sorted((CAPTURES / "recordings").glob("*.pcapng.gz"))
    result = run("secrets", CAPTURES / "demo.pcap", *recordings)
    assert (result.status, result.out, result.err) == (0, "", "")


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "write", [each for each in SCENES if each is not orphans], ids=lambda each: each.__name__
)
def test_each_kind_of_secret_is_found(
    run: Run, tmp_path: Path, write: Callable[[WireConnection], None]
) -> None:
    path = capture(write, tmp_path / "a.pcap")
    result = run("secrets", path, "-T", "ndjson")
    assert result.status == 1
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert rows
    assert all(row["capture"] == str(path) and row["packet"] > 0 for row in rows)


def test_messages_without_a_known_api_are_not_judged(run: Run, tmp_path: Path) -> None:
    """A capture that begins midway has responses without requests."""
    assert run("secrets", capture(orphans, tmp_path / "a.pcap")).status == 0


def test_a_redacted_capture_passes_and_one_joined_to_others_does_not(
    run: Run, tmp_path: Path
) -> None:
    shared, joined = tmp_path / "shared.pcapng", tmp_path / "joined.pcapng"
    plain = tmp_path / "plain.pcapng"
    assert run("export", SASL, "--redact", "-o", shared).status == 0
    assert run("export", SASL, "-o", plain).status == 0
    assert run("secrets", shared).status == 0
    assert run("secrets", plain).status == 1
    joined.write_bytes(shared.read_bytes() + plain.read_bytes())
    assert run("secrets", joined).status == 1


def test_tls_secrets_in_the_file_are_secrets(run: Run, tmp_path: Path) -> None:
    path, log = tmp_path / "a.pcapng", b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    body = struct.pack("<II", 0x544C534B, len(log)) + log + bytes(-len(log) % 4)
    size = struct.pack("<I", 12 + len(body))
    path.write_bytes(section + struct.pack("<I", 0x0A) + size + body + size)
    result = run("secrets", path)
    assert (result.status, result.out.count("TLS secrets")) == (1, 1)


def test_bad_input_has_one_line_and_status_2(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(b"no capture at all")
    for name in (path, tmp_path / "none.pcap"):
        result = run("secrets", name)
        assert result.status == 2
        assert result.err.count("\n") == 1


def test_the_hook_runs_the_command_on_captures() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    (hook,) = yaml.safe_load(text)
    assert hook["entry"] == "kafkashark secrets"
    names = ("a.pcap", "b/c.pcapng.gz", "ring.pcap3", "a.cap.zst", "a.py", "pcap.md", "a.keylog")
    assert [bool(re.search(hook["files"], name)) for name in names] == [True] * 4 + [False] * 3
