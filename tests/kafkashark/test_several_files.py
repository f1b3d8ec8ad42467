"""Files of one capture, in whatever order and however they overlap: the rows of the whole."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from kafkashark import Plan, dissect, open_capture
from replay.model.outcome import Difference, Outcome, Verdict
from replay.options.target_settings import TargetSettings
from replay.report.report import text_lines
from replay.report.run_report import RunReport

DEMO = Path(__file__).parents[2] / "captures" / "demo.pcap"
HEADER_BYTES, RECORD_BYTES, ADDRESS_AT = 24, 16, 14 + 12

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str | Path) -> str:
        main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert not err, err
        return str(out)

    return command


def records(capture: bytes) -> list[bytes]:
    """Return the packets of a pcap file, with their headers."""
    found, at = [], HEADER_BYTES
    while at < len(capture):
        end = at + RECORD_BYTES + struct.unpack_from("<I", capture, at + 8)[0]
        found.append(capture[at:end])
        at = end
    return found


def written(folder: Path, parts: dict[str, Sequence[bytes]]) -> list[str]:
    head = DEMO.read_bytes()[:HEADER_BYTES]
    for name, packets in parts.items():
        (folder / name).write_bytes(head + b"".join(packets))
    return [str(folder / name) for name in parts]


@pytest.fixture
def rotated(tmp_path: Path) -> list[str]:
    """The files of `tcpdump -C` as a shell sorts them: cap.pcap, cap.pcap1, cap.pcap10."""
    packets = records(DEMO.read_bytes())
    share = len(packets) // 11
    parts = {f"cap.pcap{at or ''}": packets[at * share : (at + 1) * share] for at in range(12)}
    return sorted(written(tmp_path, parts))


@pytest.fixture
def taps(tmp_path: Path) -> list[str]:
    """Two concurrent files, each with one direction of all connections."""
    directions: tuple[list[bytes], list[bytes]] = ([], [])
    for each in records(DEMO.read_bytes()):
        ports = struct.unpack_from(">HH", each, RECORD_BYTES + 34)
        directions[ports[0] > ports[1]].append(each)
    assert all(directions)
    return written(tmp_path, {"b": directions[0], "a": directions[1]})


def rows(text: str) -> list[dict[str, Any]]:
    """Return rows without the names of files."""
    found = [json.loads(line) for line in text.splitlines()]
    for row in found:
        for name in ("capture", "subject" if row.get("section") == "summary" else ""):
            row.pop(name, None)
        for each in row.get("evidence", ()):
            each.pop("capture")
    return found


NDJSON = ("pairs", "records", "dissect", "streams", "timeline", "conform")


@pytest.mark.thinned(6)
@pytest.mark.parametrize("command", [*NDJSON, "stats", "groups"])
def test_rotated_files_give_the_rows_of_the_whole(
    command: str, rotated: list[str], run: Run
) -> None:
    words = ("-T", "ndjson") if command in NDJSON else ()
    whole, parts = run(command, DEMO, *words), run(command, *rotated, *words)
    if command in NDJSON:
        assert rows(parts) == rows(whole)
    else:
        assert parts == whole


@pytest.mark.thinned(3)
@pytest.mark.parametrize("command", ["pairs", "records", "timeline"])
def test_concurrent_files_are_one_capture(command: str, taps: list[str], run: Run) -> None:
    """Whatever is told apart by packet numbers: those of the merged files."""
    whole = rows(run(command, DEMO, "-T", "ndjson"))
    assert rows(run(command, *taps, "-T", "ndjson")) == whole
    assert rows(run(command, *reversed(taps), "-T", "ndjson")) == whole


def test_the_file_of_each_row(taps: list[str]) -> None:
    requests = {exchange.capture for exchange in dissect(taps) if exchange.request_packet}
    responses = {exchange.capture for exchange in dissect(taps) if not exchange.request_packet}
    assert len(requests) == 1
    assert not responses


def test_lines_do_not_go_back_in_time_and_name_their_files(taps: list[str], run: Run) -> None:
    lines = run("dissect", *taps).splitlines()
    times = [float(line.split()[1]) for line in lines]
    assert times == sorted(times)
    plain = run("dissect", DEMO).splitlines()
    contents = [records(Path(each).read_bytes()) for each in taps]
    whole = records(DEMO.read_bytes())
    assert [re.sub(r"  \[\w: \d+\]$", "", line) for line in lines] == plain
    for line in lines:
        place = re.search(r"\[(\w): (\d+)\]$", line)
        assert place is not None
        file = contents["ba".index(place[1])]
        assert file[int(place[2]) - 1] == whole[int(line.split()[0]) - 1]


@pytest.mark.long
def test_events_and_findings_name_the_files_of_their_packets(rotated: list[str], run: Run) -> None:
    events = run("timeline", *rotated, "--kind", "group")
    assert re.search(r"\[packets [\d,-]+ \(cap\.pcap\d*: [\d,-]+", events)
    assert re.search(
        r"\(packet \d+, cap\.pcap\d*: \d+\)", run("timeline", *rotated, "-T", "mermaid")
    )
    found = run("conform", *rotated)
    assert re.search(r"packet \d+ \(cap\.pcap\d*: \d+\)", found)
    assert "(cap" not in run("conform", DEMO)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("words", [(), ("--redact",)])
def test_an_export_of_concurrent_files(
    words: Sequence[str], taps: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.pcapng"
    assert main(["export", *taps, "-Y", "api == Produce", "-o", str(out), *words]) == 0
    assert capsys.readouterr().err == ""
    columns = ["correlation_id", "status", "latency_ms", "request_bytes", "response_bytes"]
    expected = open_capture(DEMO, filter="api == Produce").exchanges().select(columns)
    found = open_capture(out, filter="api == Produce").exchanges().select(columns)
    assert found.sort(columns).equals(expected.sort(columns))


@pytest.mark.long
def test_python_reads_files_in_any_order(rotated: list[str], taps: list[str]) -> None:
    whole = open_capture(DEMO)
    for files in (rotated, taps, [Path(each).read_bytes() for each in rotated]):
        assert open_capture(files).exchanges().height == whole.exchanges().height
        assert open_capture(*files).records().height == whole.records().height
    with Plan.of(DEMO) as expected, Plan.of(*rotated) as found:
        assert len(found) == len(expected)


@pytest.mark.long
def test_a_report_names_the_files_of_packets(
    rotated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["report", *rotated, "-o", str(page)]) == 0
    assert capsys.readouterr().err == ""
    assert re.search(r"[\d,-]+ \(cap\.pcap\d*: [\d,-]+", page.read_text())


def _report_with_a_difference(plan: Plan) -> RunReport:
    report = RunReport(plan, TargetSettings("target:9092"))
    step = plan.step(plan.size - 1)
    report.add(Outcome(step), Verdict.DIFFERS, [Difference("error_code", 0, 1)])
    return report


def test_differences_of_a_replay_name_the_file_of_the_request(rotated: list[str]) -> None:
    report = _report_with_a_difference(Plan.of(*rotated))
    (row,) = report.differences()
    name, number = row["request_place"].split(": ")
    packet = int(row["request_packet"])
    before = [len(records(Path(each).read_bytes())) for each in _in_order_before(rotated, name)]
    assert packet == sum(before) + int(number)
    assert f"packet {packet} ({name}: {number})" in "\n".join(text_lines(report))
    (row,) = _report_with_a_difference(Plan.of(DEMO)).differences()
    assert row["request_place"] == ""


def _in_order_before(rotated: list[str], name: str) -> list[str]:
    """Return the files that `tcpdump -C` wrote before one of them."""
    ordered = sorted(rotated, key=lambda each: int(each.rpartition("cap.pcap")[2] or 0))
    return ordered[: [Path(each).name for each in ordered].index(name)]
