"""The folder for Wireshark, by tshark, which reads profiles as Wireshark does."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars
import pytest

from dissector.cli import main
from kafkashark import open_capture

CAPTURES = Path(__file__).parents[2] / "captures"
DEMO = CAPTURES / "demo.pcap"

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str], str]:
    """Run the command; return its status, the lines that it printed, and stderr."""
    status = main(["wireshark", *map(str, words)])
    printed = capsys.readouterr()
    return status, printed.out.splitlines(), printed.err


def exchanges(name: Path, **given: Any) -> polars.DataFrame:
    """Return the exchanges of a capture, without its name."""
    return open_capture(name, **given).exchanges().drop("capture")


def tshark(command: str, *options: str) -> list[list[str]]:
    """Run the printed command with tshark in place of Wireshark; return its lines by tabs."""
    variable, _, *words = shlex.split(command)
    name, _, folder = variable.partition("=")
    lines = subprocess.run(
        ["tshark", *words, "-T", "tabs", *options],
        env={**os.environ, name: folder},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [[cell.strip() for cell in line.split("\t")] for line in lines.splitlines()]


@needs_tshark
def test_tshark_shows_kafka_at_its_ports_with_comments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "with space"
    status, (counts, command), _ = run(capsys, DEMO, "-o", folder, "--no-open")
    assert status == 0
    assert exchanges(folder / "demo.pcapng").equals(exchanges(DEMO))
    assert counts.startswith(f"{folder / 'demo.pcapng'}: 1,163 packets; ports of Kafka: 21863, ")
    rows = tshark(command)
    assert [int(row[0]) for row in rows] == list(range(1, 1164)), "numbers as before"
    apis = {row[5] for row in rows}
    assert {"Produce", "Fetch", "JoinGroup", "CreateTopics"} <= apis
    assert {"demo.orders"} <= {row[9] for row in rows}
    comments = {int(row[0]): row[11] for row in rows if row[11]}
    assert any(text.startswith("kafkashark breaks: ") for text in comments.values())
    chosen = tshark(command, "-Y", 'frame.comment contains "kafkashark breaks"')
    assert {int(row[0]) for row in chosen} < comments.keys()
    assert (folder / "profiles" / "kafkashark" / "colorfilters").read_text().count("\n") == 10


@needs_tshark
def test_secrets_of_key_logs_are_in_the_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = CAPTURES / "kafka4-java-tls13.pcap.gz"
    keylog = CAPTURES / "kafka4-java-tls13.keylog"
    written = tmp_path / "kafka4-java-tls13.pcapng"
    written.touch(mode=0o644)  # of a run without key log
    status, (_, command), _ = run(capsys, name, "--keylog", keylog, "-o", tmp_path, "--no-open")
    assert status == 0
    found = exchanges(written)
    assert len(found) > 10
    assert found.equals(exchanges(name, keylogs=[keylog]))
    assert {"Produce", "Fetch"} <= {row[5] for row in tshark(command, "-Y", "kafka && tls")}
    assert not written.stat().st_mode & 0o077
    again = tmp_path / "again"
    assert run(capsys, written, "--keylog", keylog, "-o", again, "--no-open")[0] == 0
    assert exchanges(again / written.name).equals(found), "of pcapng too"


def test_a_filter_chooses_connections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "api == CreateTopics"
    status, (counts, _), _ = run(capsys, DEMO, "-Y", text, "-o", tmp_path, "--no-open")
    assert status == 0
    assert counts.startswith(f"{tmp_path / 'demo.pcapng'}: ")
    chosen = open_capture(tmp_path / "demo.pcapng")
    before = open_capture(DEMO, filter=text).exchanges()
    assert len(chosen.filter(text).exchanges()) == len(before)
    assert len(chosen.streams()) == before["connection"].n_unique()


def test_the_program_is_started_or_its_command_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "wireshark"
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("wireshark.wireshark_program._ON_MACOS", "")
    status, lines, err = run(capfd, DEMO)
    command = "WIRESHARK_CONFIG_DIR=demo.wireshark wireshark -C kafkashark -r "
    assert (status, lines[1:]) == (0, [command + "demo.wireshark/demo.pcapng"])
    assert "wireshark is not installed" in err
    program.write_text('#!/bin/sh\necho "$WIRESHARK_CONFIG_DIR" "$@"\nexit "${STATUS:-0}"\n')
    program.chmod(0o755)
    status, lines, err = run(capfd, DEMO)
    opened = "demo.wireshark -C kafkashark -r demo.wireshark/demo.pcapng"
    assert (status, lines[1:], err) == (0, [opened], "")
    monkeypatch.setenv("STATUS", "3")
    status, _, err = run(capfd, DEMO)
    assert (status, err) == (2, f"kafkashark: {program} ended with status 3\n")


def test_no_input_is_overwritten_or_read_once_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, DEMO, "--no-open")[0] == 0
    written = tmp_path / "demo.wireshark" / "demo.pcapng"
    before = written.read_bytes()
    for words in ((written,), (written, "-o", written.parent), (DEMO, "-o", written)):
        status, _, err = run(capsys, *words, "--no-open")
        assert (status, err.count("\n")) == (2, 1)
    assert written.read_bytes() == before
    assert run(capsys, DEMO, "--mask", "value", "--no-open")[0] == 2
    status, _, err = run(capsys, "-", "--no-open")
    assert (status, err) == (2, "kafkashark: -: it is read several times; save a pipe to a file\n")
