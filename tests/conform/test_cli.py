"""The command `conform`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import conform.rules  # noqa: F401  (fills the registry)
from conform.registry.rule import REGISTRY
from dissector.cli import main

CAPTURES = Path(__file__).parents[2] / "captures"
MOCK = str(CAPTURES / "librdkafka-acks.pcap")
"""Recorded at the mock cluster, which breaks rules."""
GOOD = str(CAPTURES / "kafka4-java-clients.pcap")
TLS = str(CAPTURES / "kafka4-aiokafka-tls.pcap")
RULES = sum(each.on != "live" for each in REGISTRY.values())
"""The number of rules for captures."""


def _run(*arguments: str) -> int:
    return main(["conform", *arguments])


def test_errors_give_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(MOCK) == 1
    out, err = capsys.readouterr()
    assert "error F05 Response to a Produce request with acks = 0" in out
    assert out.splitlines()[-1].startswith(f"{MOCK}: ")
    assert not err


def test_without_errors_the_status_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(GOOD) == 0
    assert ": 0 errors, 0 warnings" in capsys.readouterr().out


def test_rules_are_selected_and_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(MOCK, "--select", "F05,C") == 1
    selected = sum(each.id == "F05" or each.id[0] == "C" for each in REGISTRY.values())
    assert f"of {selected} rules" in capsys.readouterr().out.splitlines()[-1]
    assert _run(MOCK, "--select", "F05,C", "--ignore", "F05") == 0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("form", ["ndjson", "junit", "sarif", "html"])
def test_formats(form: str, tmp_path: Path) -> None:
    file = tmp_path / "out"
    assert _run(MOCK, "-T", form, "-o", str(file)) == 1
    text = file.read_text()
    match form:
        case "ndjson":
            assert json.loads(text.splitlines()[0])["section"] == "summary"
        case "junit":
            assert int(ElementTree.fromstring(text.encode()).get("failures") or 0)
        case "sarif":
            assert json.loads(text)["runs"][0]["results"]
        case "html":
            assert text.startswith("<!doctype html>")


def test_a_baseline_suppresses_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "known"
    assert _run(MOCK, "--write-baseline", str(file)) == 0
    capsys.readouterr()
    assert _run(MOCK, "--baseline", str(file)) == 0
    out, err = capsys.readouterr()
    assert "error F05" not in out
    assert "in the baseline" in out
    assert not err
    assert _run(GOOD, "--baseline", str(file)) == 0
    assert "no finding matches F05" in capsys.readouterr().err


def test_rules_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--list", "--select", "F") == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0]
        == "F01  error    breaks clients      Bytes outside frames, or an invalid frame size"
    )
    assert all(line.startswith("F") for line in lines)
    assert _run("--explain", "f03") == 0
    assert "SocketServer" in capsys.readouterr().out
    for words in (("--list", "--select", "F"), ("--explain", "F03")):
        assert _run(*words, "-T", "ndjson") == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {row["rule"][0] for row in rows} == {"F"}
        assert all(row["title"] and row["source"] for row in rows)
        assert _run(*words, "-T", "junit") == 2
        assert "--list and --explain print text or ndjson" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to check"),
        ([GOOD, "--select", "F99"], "unknown rule 'F99'"),
        ([GOOD, "-T", "xml"], "-T takes text"),
        (["--explain", "F99"], "unknown rule 'F99'"),
        ([GOOD, "--baseline", "nowhere"], "nowhere: cannot be read (No such file"),
        (["nowhere.pcap"], "nowhere.pcap"),
        ([GOOD, "--fail-on", "never"], "--fail-on takes error"),
        ([GOOD, "--baseline", GOOD], f"{GOOD}: is not text"),
    ],
)
def test_wrong_usage_is_a_one_line_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*arguments) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert len(err.splitlines()) == 1
    assert not out


def test_fail_on_determines_the_status() -> None:
    demo = str(CAPTURES / "demo.pcap")
    assert [_run(demo, "--fail-on", each) for each in ("error", "warning", "note")] == [0, 1, 1]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([TLS], f"{TLS}: 0 of {RULES} rules judged: 5 TLS connections, none readable: --keylog"),
        ([GOOD, "--port", "9999"], "TCP connections speaks Kafka on port 9999"),
        ([GOOD, "--select", "P01"], "0 of 0 rules judged: the selected rules apply to run"),
        ([GOOD, "--select", "S02"], "the capture contains nothing that the selected rules check"),
        ([GOOD, "--require-judged", str(RULES)], f"of {RULES} rules judged: fewer than {RULES}"),
    ],
)
def test_too_few_judged_rules_fail(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.long
def test_errors_take_precedence_over_unjudged_rules() -> None:
    assert _run(MOCK, "--require-judged", str(RULES)) == 1
    assert _run(MOCK, "--require-judged", "20") == 1
    assert _run(GOOD, "--require-judged", "20") == 0


def test_a_rule_is_explained_with_its_rank(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--explain", "b08") == 0
    assert "rank      differs from Kafka" in capsys.readouterr().out
