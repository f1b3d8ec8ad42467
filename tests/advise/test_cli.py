"""The command `advise`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from advise.catalogue import ADVICES
from dissector.cli import main
from dissector.public import open_capture
from tests import tcp_captures
from tests.advise.advised_programs import BAD, producer

DEMO = str(Path(__file__).parents[2] / "captures" / "demo.pcap")


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """A program that sends record by record."""
    return str(tcp_captures.write(tmp_path / "tiny.pcap", BAD["tiny-batches"]().wire.packets))


def test_a_finding_says_whom_what_it_costs_and_how_to_see_it(
    tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", tiny]) == 1
    out = capsys.readouterr().out
    assert "costly tiny-batches Produce requests with few records: shop at 10.0.0.1\n" in out
    assert "  found     600 Produce requests on a connection, 100 a second, with 1.0 records" in out
    assert "requests avoidable with a linger of 20 ms." in out
    assert "kafkashark advise --explain tiny-batches" in out
    assert out.splitlines()[-1].startswith(f"{tiny}: 1 costly, 0 risky, 0 informs; 1 client, 600 ")
    assert main(["advise", tiny, "-T", "ndjson"]) == 1
    summary, finding, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    assert (summary["costly"], finding["number"], finding["threshold"]) == (1, 1.0, 2.0)
    shown = open_capture(tiny, filter=finding["filter"]).exchanges()
    assert len(shown) == finding["count"] == 600
    assert finding["packets"] == [shown["request_packet"].min(), shown["request_packet"].max()]


@pytest.mark.parametrize("form", ["ndjson", "junit", "sarif", "html"])
def test_formats(form: str, tiny: str, tmp_path: Path) -> None:
    file = tmp_path / "out"
    assert main(["advise", tiny, "-T", form, "-o", str(file)]) == 1
    text = file.read_text()
    match form:
        case "ndjson":
            sections = [json.loads(line)["section"] for line in text.splitlines()]
            assert sections.count("advice") == len(ADVICES)
        case "junit":
            suite = ElementTree.fromstring(text.encode())
            assert (suite.get("tests"), suite.get("failures")) == (str(len(ADVICES)), "1")
        case "sarif":
            (result,) = json.loads(text)["runs"][0]["results"]
            assert (result["ruleId"], result["level"]) == ("tiny-batches", "error")
        case "html":
            assert "tiny-batches" in text


def test_exit_status_follows_the_rank(tmp_path: Path) -> None:
    scene = producer(30, 10, 100, is_idempotent=False)
    path = str(tcp_captures.write(tmp_path / "risky.pcap", scene.wire.packets))
    assert main(["advise", path]) == 0
    assert main(["advise", path, "--fail-on", "risky"]) == 1
    assert main(["advise", path, "--fail-on", "risky", "--ignore", "not-idempotent"]) == 0
    assert main(["advise", path, "--fail-on", "nothing"]) == 0


def test_thresholds_come_from_options_and_settings(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", tiny, "--set", "tiny-batches.rate=1000"]) == 0
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "kafkashark.toml"
    settings.write_text("[advise.tiny-batches]\nrate = 1000\n")
    assert main(["advise", tiny]) == 0
    assert main(["advise", tiny, "--set", "tiny-batches.rate=10"]) == 1
    settings.write_text("[advise.tiny-batches]\nrate = 'fast'\n")
    capsys.readouterr()
    assert main(["advise", tiny]) == 2
    assert "kafkashark.toml: advise.tiny-batches.rate: must be a number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--set tiny-batch.rate=1", "there is no advice 'tiny-batch'; did you mean tiny-batches?"),
        ("--set tiny-batches.rat=1", "tiny-batches has the thresholds count, seconds, rate"),
        ("--set tiny-batches.rate=nan", "takes a number from 0 on, not 'nan'"),
        ("--set rate", "--set takes ADVICE.NAME=VALUE, not 'rate'"),
        ("--select nothing", "there is no advice 'nothing'"),
        ("--list -T html", "--list and --explain print text or ndjson, not html"),
    ],
)
def test_wrong_usage(options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", DEMO, *options.split()]) == 2
    assert message in capsys.readouterr().err


def test_advices_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ADVICES)
    assert main(["advise", "--explain", "acks-0"]) == 0
    out = capsys.readouterr().out
    assert "librdkafka: request.required.acks=-1 (acks=all)" in out
    assert "acks-0.count=20: Produce requests of a client with acks=0" in out
    assert main(["advise", "--explain", "acks-0", "-T", "ndjson"]) == 0
    assert json.loads(capsys.readouterr().out)["rank"] == "risky"


def test_short_traffic_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", DEMO]) == 0
    out = capsys.readouterr().out
    assert "too few requests, or too short a time: " in out
    assert "tiny-batches (" in out
