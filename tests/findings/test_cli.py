"""`kafkashark CAPTURE...` without a command, and `findings`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dissector.cli import main
from dissector.public import open_capture
from findings.sources import SOURCES
from tests.corpus import FOLDER

DEMO = str(FOLDER / "demo.pcap")
UNREAD = str(FOLDER / "kafka4-java-tls13.pcap.gz")


@pytest.mark.long
def test_captures_without_a_command_print_what_stands_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([DEMO]) == 0
    out = capsys.readouterr().out
    assert "13 failed (4.6%), 0 without a response" in out
    lines = out.splitlines()
    assert "breaks   3 OffsetCommit failed: UNKNOWN_TOPIC_OR_PARTITION" in lines
    assert (
        "         with it: Invalid topic name, 2 times (kafkashark conform --explain B22)" in lines
    )
    assert max(map(len, lines)) <= 100
    for words in (["findings", DEMO], ["-Y", "api", DEMO], [DEMO, "--color", "never"]):
        assert main(words) == 0
        assert capsys.readouterr().out.splitlines()[5:] == lines[5:]
    monkeypatch.chdir(FOLDER)
    assert main(["demo.pcap", "--color", "always", "-c", "1"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[1m\x1b[91mbreaks" in out
    assert "... 10 more: without -c, or with a larger one" in out


def test_commands_to_go_on_are_valid(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    named = tmp_path / "two words.pcap"
    named.write_bytes(Path(DEMO).read_bytes())
    assert main([str(named)]) == 0
    lines = capsys.readouterr().out.splitlines()
    commands = [line.strip() for line in lines[lines.index("Go on") + 1 :]]
    words = [shlex.split(each) for each in commands]
    assert all(each[0] == "kafkashark" and str(named) in each for each in words)
    assert main(words[1][1:6]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 13 + 1


def test_a_capture_that_can_not_be_read_is_no_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([UNREAD]) == 0
    out = capsys.readouterr().out
    assert "nothing can be judged: no exchanges" in out
    assert "4 TLS connections not decrypted; 0 of 4 TLS connections read" in out
    assert "--keylog FILE" in out
    assert main([UNREAD, "--fail-on", "breaks"]) == 1


def test_what_is_no_command_and_no_capture_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing.pcap"]) == 2
    assert "missing.pcap: no such file" in capsys.readouterr().err
    assert main(["pears", DEMO]) == 2
    assert "no command 'pears'" in capsys.readouterr().err
    assert main(["--bogus", DEMO]) == 2
    assert "--bogus" in capsys.readouterr().err
    assert main([DEMO, "--events", "some"]) == 2
    assert "--events takes a number or all, not 'some'" in capsys.readouterr().err


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("rank", "status"), [("breaks", 1), ("informs", 1), ("nothing", 0)])
def test_exit_status_follows_the_rank(rank: str, status: int) -> None:
    assert main([DEMO, "--fail-on", rank]) == status
    assert main([DEMO, "--select", "slow", "--fail-on", "breaks"]) == 0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("form", ["ndjson", "junit", "sarif", "html"])
def test_formats(form: str, tmp_path: Path) -> None:
    file = tmp_path / "out"
    assert main([DEMO, "-T", form, "-o", str(file), "--fail-on", "breaks"]) == 1
    text = file.read_text()
    match form:
        case "ndjson":
            rows = [json.loads(line) for line in text.splitlines()]
            assert (rows[0]["section"], rows[0]["failed"]) == ("headline", 13)
            first = rows[1]
            chosen = open_capture(DEMO, filter=first["filter"]).exchanges()
            assert len(chosen) == first["count"] == 3
            assert chosen["request_packet"].to_list() == first["packets"]
            assert chosen["request_time_ns"].min() == first["begin_ns"]
            assert chosen["request_time_ns"].max() == first["end_ns"]
        case "junit":
            suite = ElementTree.fromstring(text.encode())
            assert (suite.get("tests"), suite.get("failures")) == (str(len(SOURCES)), "1")
        case "sarif":
            results = json.loads(text)["runs"][0]["results"]
            assert (results[0]["ruleId"], results[0]["level"]) == ("error", "error")
        case "html":
            assert "3 OffsetCommit failed: UNKNOWN_TOPIC_OR_PARTITION" in text


def test_sources_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SOURCES)
    assert main(["findings", "--explain", "slow", "-T", "ndjson"]) == 0
    assert "10 times its median" in json.loads(capsys.readouterr().out)["meaning"]


def test_parts_of_a_capture_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([DEMO, "--events", "0", "--conform", "100"]) == 0
    out = capsys.readouterr().out
    assert "events: not looked for" in out
    assert "conformance: only of the first 100 exchanges" in out


def test_the_report_is_refreshed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([DEMO, "--interval", "0.1"]) == 0
    assert capsys.readouterr().out.count("Go on") >= 1
