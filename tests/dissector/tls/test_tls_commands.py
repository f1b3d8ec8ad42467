"""TLS in outputs and messages of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.cli import main
from dissector.engine.reading.tls_report import WAYS_TO_KEYS
from dissector.public import open_capture
from tests.corpus import FOLDER
from tests.dissector.cli.conftest import Run

NAME = "kafka4-java-tls13"
CAPTURE, KEYLOG = FOLDER / f"{NAME}.pcap.gz", FOLDER / f"{NAME}.keylog"
COMMANDS = (
    "dissect", "pairs", "records", "streams", "stats", "conform", "groups", "timeline",
    "report", "export", "replay",
)  # fmt: skip
UNREADABLE = "4 TLS connections, none readable"
LINES = [line for line in KEYLOG.read_text().lower().splitlines() if not line.startswith("#")]
SECRETS = [line.split()[2] for line in LINES]


def arguments(command: str) -> list[str]:
    if command == "replay":
        return ["--to", "mock", "--speed", "max"]
    return ["-o", f"out.{command}"] if command in ("report", "export") else []


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("command", [*COMMANDS, "serve"])
def test_only_tls_without_a_key_log(run: Run, command: str) -> None:
    done = run(command, CAPTURE, *arguments(command))
    assert done.err.count("\n") == 1
    assert done.err.endswith(f"{UNREADABLE}: {WAYS_TO_KEYS}\n")
    assert done.status == (2 if command in ("conform", "replay", "serve") else 0)


@pytest.mark.parametrize("command", ["pairs", "conform", "replay"])
def test_a_key_log_of_other_connections(run: Run, command: str) -> None:
    other = FOLDER / "kafka4-franz-go-tls12.keylog"
    done = run(command, "--keylog", other, CAPTURE, *arguments(command))
    assert done.err.endswith(f"{UNREADABLE}: no line for this connection in the key log\n")
    assert done.status == (0 if command == "pairs" else 2)


@pytest.mark.parametrize(
    ("content", "why"),
    [("", ""), ("-----BEGIN KEY-----\nMIIE\n", " (2 unknown lines skipped)")],
)
def test_a_key_log_without_secrets(run: Run, tmp_path: Path, content: str, why: str) -> None:
    """Like that of librdkafka."""
    (tmp_path / "empty.log").write_text(content)
    done = run("streams", CAPTURE, "--keylog", tmp_path / "empty.log", "-T", "ndjson")
    assert done.err.endswith(f"{UNREADABLE}: no secret in the key log{why}\n")
    assert {row["tls_not_decrypted"] for row in done.rows} == {"no secret in the key log"}


def test_a_dry_run_of_tls(run: Run) -> None:
    done = run("replay", CAPTURE, "--dry-run")
    assert (done.status, done.err) == (2, f"kafkashark: {UNREADABLE}: {WAYS_TO_KEYS}\n")


@pytest.mark.thinned(3)
@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_no_messages_with_the_key_log(good: Run, command: str, tmp_path: Path) -> None:
    done = good(command, "--keylog", KEYLOG, CAPTURE, *arguments(command))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert done.out or written or command == "groups"
    content = done.out.encode() + done.err.encode() + written
    assert not any(secret.encode() in content.lower() for secret in SECRETS)
    assert not any(bytes.fromhex(secret) in content for secret in SECRETS)


def test_replay_sends_decrypted_requests(run: Run) -> None:
    done = run("replay", "--keylog", KEYLOG, CAPTURE, *arguments("replay"))
    assert "requests  19 captured" in done.out
    assert not any(secret in done.out.lower() for secret in SECRETS)


def test_columns_of_streams(good: Run) -> None:
    rows = good("streams", "--keylog", KEYLOG, CAPTURE, "-T", "ndjson").rows
    assert {row["speaks"] for row in rows} == {"kafka"}
    assert {row["tls_version"] for row in rows} == {"TLS 1.3"}
    assert {row["tls_cipher"] for row in rows} == {"TLS_AES_256_GCM_SHA384"}
    assert {row["tls_client"] for row in rows} == {"CN=orders-service,O=Orders"}
    assert {row["tls_not_decrypted"] for row in rows} == {None}
    closed = good("streams", FOLDER / "demo.pcap")
    assert "tls_version" not in closed.out
    assert "tls_version" in good("streams", "--keylog", KEYLOG, CAPTURE).out


def test_counts_of_stats(good: Run) -> None:
    with_keys = good("stats", "--keylog", KEYLOG, CAPTURE, "-T", "ndjson").rows[-1]
    assert (with_keys["tls_connections"], with_keys["decrypted_connections"]) == (4, 4)
    assert with_keys["kafka_connections"] == 4


def test_streams_write_the_plaintext(good: Run, run: Run, tmp_path: Path) -> None:
    for number in ("first", "again"):
        good("streams", "--keylog", KEYLOG, CAPTURE, "--write", tmp_path / number)
    sent = (tmp_path / "first" / "0-a.bin").read_bytes()
    assert sent[4:8] == b"\0\x12\0\x05", "ApiVersions v5"
    frames = [each.request for each in open_capture(CAPTURE, keylogs=[KEYLOG])]
    whole = b"".join(each.read_bytes() for each in (tmp_path / "first").glob("*-a.bin"))
    assert len(whole) == sum(4 + len(each.frame) for each in frames if each is not None)
    run("streams", CAPTURE, "--write", tmp_path / "closed")
    assert (tmp_path / "closed" / "0-a.bin").read_bytes()[:3] == b"\x16\x03\x03"


def test_tls_in_python(tmp_path: Path) -> None:
    with_keys = open_capture(CAPTURE, keylogs=[KEYLOG]).records()
    assert len(with_keys) > 0
    assert len(open_capture(CAPTURE).records()) == 0
    assert main(["pairs", str(CAPTURE), "--keylog", str(KEYLOG), "-o", str(tmp_path / "a")]) == 0
