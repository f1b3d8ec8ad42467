"""Traces of captures agree with their exchanges, records and events."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.reading.capture import Capture, Options
from tests import tcp_captures
from tests.conform.scene import Scene
from tests.corpus import FOLDER
from tests.timeline.events_of import corpus_events
from tests.timeline.output.perfetto.read_trace import (
    exchanges_of,
    read_trace,
    trace_file,
    trace_of,
)
from timeline.cli import timeline
from timeline.output.perfetto.trace import Trace
from timeline.timeline import Timeline

GROUP = FOLDER / "kafka4-librdkafka-group.pcap"
TRANSACTIONS = FOLDER / "kafka4-librdkafka-transactions.pcap"
THROTTLED = FOLDER / "kafka4-throttled.pcap"
CAPTURES = [GROUP, TRANSACTIONS, THROTTLED, FOLDER / "demo.pcap"]
METADATA = 3


def times(exchange: Any) -> tuple[int, int]:
    both = exchange.request_time_ns, exchange.response_time_ns
    begin, end = (
        each if each is not None else other for each, other in zip(both, both[::-1], strict=True)
    )
    return begin, max(begin, end)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_each_exchange_is_a_slice_of_its_client(capture: Path, tmp_path: Path) -> None:
    shown = Counter(
        (
            each.track[0],
            each.track[1].rpartition(" #")[0],
            each.name,
            each.begin_ns,
            each.end_ns,
            each.values.get("correlation id"),
            each.values.get("request packet"),
            each.values.get("response bytes"),
            each.values.get("errors", ""),
        )
        for each in trace_of(capture, tmp_path).below("client ")
    )
    wanted = Counter()
    for each in exchanges_of(capture):
        host = each.client.rpartition(":")[0]
        client = f"{each.client_id} at {host}" if each.client_id else host
        row = each.row()
        wanted[
            f"client {client}",
            f"to broker {each.broker}",
            each.api or "response without a request",
            *times(each),
            each.correlation_id,
            each.request_packet,
            row["response_bytes"],
            ", ".join(row["errors"]),
        ] += 1
    assert shown == wanted


def test_pipelined_requests_have_separate_tracks(tmp_path: Path) -> None:
    scene = Scene()
    connection = scene.connect()
    for number in (1, 2, 3):
        connection.request(METADATA, 9, number, topics=None)
    for number in (1, 2, 3):
        connection.response(METADATA, 9, number)
    connection.request(METADATA, 9, 4, topics=None).response(METADATA, 9, 4)
    capture = tcp_captures.write(tmp_path / "scene.pcap", scene.wire.packets)
    trace = trace_of(capture, tmp_path)
    found = sorted((each.values["correlation id"], each.track[1]) for each in trace.below("client"))
    assert len({track for _, track in found[:3]}) == 3
    assert found[3][1] in {track for _, track in found[:3]}
    (client,) = {each.track[0] for each in trace.below("client")}
    in_flight = [value for _, value in trace.counters[client, "in flight"]]
    assert in_flight == [1, 2, 3, 2, 1, 0, 1, 0]


def value_at(points: list[tuple[int, int]], time_ns: int) -> int:
    return [0, *(value for at, value in points if at <= time_ns)][-1]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_counters_are_sums_over_exchanges(capture: Path, tmp_path: Path) -> None:
    trace = trace_of(capture, tmp_path)
    exchanges = exchanges_of(capture)
    for broker in {each.broker for each in exchanges}:
        own = [each for each in exchanges if each.broker == broker]
        points = trace.counters[f"broker {broker}", "in flight"]
        spans = [times(each) for each in own if each.status == "answered"]
        for moment in {time_ns for span in spans for time_ns in span}:
            flying = sum(begin <= moment < end for begin, end in spans)
            assert value_at(points, moment) == flying
        for side in ("request", "response"):
            sizes = [each.row()[f"{side}_bytes"] for each in own]
            total = sum(size + 4 for size in sizes if size is not None)
            assert trace.counters[f"broker {broker}", f"{side} bytes"][-1][1] == total


def test_fetch_positions_are_relative_to_the_high_watermark(tmp_path: Path) -> None:
    trace = trace_of(GROUP, tmp_path)
    shown = {
        (*track, *point)
        for track, points in trace.counters.items()
        if track[-1].startswith("fetch position ")
        for point in points
    }
    wanted = set()
    for each in exchanges_of(GROUP):
        if each.api != "Fetch" or each.response is None:
            continue
        for topic in each.response.body.responses:
            for partition in topic.partitions:
                own = [
                    record
                    for record in record_rows(each)
                    if record["partition"] == partition.partition_index
                ]
                if own:
                    lag = partition.high_watermark - own[-1]["offset"] - 1
                    name = f"fetch position {own[-1]['topic']} {partition.partition_index}"
                    client = f"client {each.client_id} at 127.0.0.1"
                    wanted.add((client, name, each.response_time_ns, lag))
    assert shown == wanted != set()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("words", [(), ("-Y", "api == OffsetCommit")])
def test_the_lag_of_groups_is_that_of_their_offsets(tmp_path: Path, words: tuple[str, ...]) -> None:
    capture = FOLDER / "demo.pcap"
    counters = trace_of(capture, tmp_path, *words).counters
    last = {
        track[-1]: points[-1][1]
        for track, points in counters.items()
        if track[:2] == ("groups", "billing")
    }
    partitions = {0: 50, 1: 4, 2: 2}  # as in `kafkashark groups`
    wanted = {f"lag demo.orders {number}": lag for number, lag in partitions.items()}
    assert last == {**wanted, "lag": 56}


def test_throttle_times_end(tmp_path: Path) -> None:
    points = trace_of(THROTTLED, tmp_path).counters["client greedy at 127.0.0.1", "throttle"]
    throttled = {
        (each.response_time_ns, each.response.body.throttle_time_ms)
        for each in exchanges_of(THROTTLED)
        if each.api == "Produce" and each.response.body.throttle_time_ms
    }
    assert throttled <= set(points)
    assert points[-1][1] == 0
    last_ns, last_ms = max(throttled)
    assert points[-1][0] >= last_ns + last_ms * 10**6


def written_and_read(capture: Path) -> set[tuple[int, int]]:
    """Return the packets of a Produce request and of a Fetch response with the same offsets."""
    written: dict[tuple[str, int, int], int] = {}
    pairs = set()
    for each in exchanges_of(capture):
        places = {
            (record["topic"], record["partition"], record["offset"]) for record in record_rows(each)
        }
        if each.api == "Produce":
            written |= dict.fromkeys(places, each.request_packet)
        elif each.api == "Fetch":
            found = {written[place] for place in places & written.keys()}
            pairs |= {(packet, each.response_packet) for packet in found}
    return pairs


@pytest.mark.thinned(2)
@pytest.mark.parametrize("capture", [GROUP, TRANSACTIONS], ids=lambda path: path.stem)
def test_flows_lead_from_produce_to_fetch(capture: Path, tmp_path: Path) -> None:
    slices = trace_of(capture, tmp_path).below("client ")
    shown = {
        (begin.values["request packet"], end.values["response packet"])
        for begin in slices
        if begin.name == "Produce"
        for end in slices
        if end.name == "Fetch" and begin.flows & end.flows
    }
    assert shown == written_and_read(capture) != set()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("capture", [GROUP, TRANSACTIONS], ids=lambda path: path.stem)
def test_events_are_slices_of_their_subjects(capture: Path, tmp_path: Path) -> None:
    trace = trace_of(capture, tmp_path)
    titles = ("groups", "producers", "transactions", "consumers", "connections", "cluster")
    shown = Counter(
        (each.track[0], each.track[1], each.name, each.begin_ns, each.end_ns, each.values["text"])
        for title in titles
        for each in trace.below(title)
    )
    plural = {title.removesuffix("s"): title for title in titles}
    wanted = Counter(
        (
            plural[each.kind],
            each.subject,
            each.title,
            each.time_ns,
            each.end_ns,
            each.text,
        )
        for each in corpus_events(capture.name)
    )
    assert shown == wanted
    assert {"groups", "transactions"} & {each.track[0] for each in trace.slices}


def test_the_trace_does_not_depend_on_windows() -> None:
    def shown(options: Options) -> tuple[list[Any], dict[Any, Any]]:
        pieces: list[bytes] = []
        capture = Capture([TRANSACTIONS], options)
        windows = capture.windows(gleaning=True)
        Trace(capture, pieces.append).write(windows, Timeline(capture).events)
        trace = read_trace(b"".join(pieces))
        slices = [
            (each.track[0], each.name, each.begin_ns, each.end_ns, sorted(each.flows))
            for each in trace.slices
        ]
        sums = {
            track: points
            for track, points in trace.counters.items()
            if not track[-1].startswith(("lag", "fetch position"))
        }
        return sorted(slices), sums

    assert shown(Options(window_bytes=20_000)) == shown(Options())


def test_a_filter_selects_exchanges(tmp_path: Path) -> None:
    trace = trace_of(GROUP, tmp_path, "-Y", "api == JoinGroup", "--kind", "group")
    assert {each.name for each in trace.below("client ")} == {"JoinGroup"}


def test_credentials_in_names_are_masked(tmp_path: Path) -> None:
    scene = Scene()
    name = "https://user:hunter22@registry/x"
    connection = scene.connect()
    connection.request(METADATA, 9, 1, client_id=name, topics=[{"name": name}])
    connection.response(METADATA, 9, 1)
    capture = tcp_captures.write(tmp_path / "scene.pcap", scene.wire.packets)
    assert b"hunter22" not in trace_file(capture, tmp_path).read_bytes()
    assert b"hunter22" in trace_file(capture, tmp_path, "--show-secrets").read_bytes()


def test_unreadable_captures_keep_the_output(tmp_path: Path) -> None:
    bad, output = tmp_path / "bad.pcap", tmp_path / "trace"
    bad.write_bytes(b"no capture")
    output.write_text("before")
    command = ["timeline", str(bad), "-T", "perfetto", "-o", str(output)]
    assert main(command, [("timeline", timeline)]) != 0
    assert output.read_text() == "before"


def test_trace_processor_opens_the_trace(tmp_path: Path) -> None:
    api = pytest.importorskip("perfetto.trace_processor")
    program = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if program is None:
        pytest.skip("needs trace_processor_shell, in PATH or named by TRACE_PROCESSOR")
    config = api.TraceProcessorConfig(bin_path=program)
    path = trace_file(GROUP, tmp_path)
    with api.TraceProcessor(trace=str(path), config=config) as processor:

        def count(query: str) -> int:
            (row,) = processor.query(f"select count(*) as n from ({query})")
            return int(row.n)

        assert count("select * from slice where depth > 0") == 0
        joined = sum(each.api == "JoinGroup" for each in exchanges_of(GROUP))
        assert count("select * from slice where name = 'JoinGroup'") == joined
        pairs = "select * from flow join slice on slice.id = slice_in where name = 'Fetch'"
        assert count(pairs) > 0
        assert count("select * from counter") > 0
        assert count("select * from stats where severity = 'error' and value > 0") == 0


def test_a_trace_begins_with_the_capture(tmp_path: Path) -> None:
    found = []
    for words in ((), ("-Y", "api == LeaveGroup")):
        trace = trace_of(GROUP, tmp_path, *words)
        (begin,) = trace.below("capture")
        assert begin.begin_ns <= min(each.begin_ns for each in trace.slices)
        found.append(begin.begin_ns)
    assert found[0] == found[1]
