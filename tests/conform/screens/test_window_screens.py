"""Screens: verdicts with them are those without them, and they let usual exchanges pass."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from conform.evidence import batch_summaries
from conform.evidence.batch_summaries import BatchSummaries
from conform.evidence.duplicate_items import distinct_key_fields
from conform.evidence.observation import CaptureState, ConnectionState
from conform.judge import Judge
from conform.registry.rule import Rule
from conform.registry.rule_screen import FieldPlace, Screen
from conform.registry.screened_columns import FieldBatches, ScreenedRows
from conform.registry.verdict import MAX_FINDINGS_PER_KIND, Verdict
from conform.rules.wire.encoding import _FIRST_WITH_TOPIC_IDS_ONLY
from conform.screens import layout_table
from conform.screens.connection_columns import screened_rows
from conform.screens.plain_batches import PlainBatches
from conform.screens.window_screens import NOTHING, ScreenedWindow, WindowScreens
from dissector import Capture, open_capture
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.apis import api, api_keys
from dissector.protocol.schema import split_tagged
from tests import corpus, tcp_captures
from tests.conform.fetch_scenes import fetch_request, fetch_response
from tests.conform.mutations import MUTATIONS, file_of, packets_of, spoil, with_odd_fields
from tests.conform.produce_scenes import batch, edited, produce
from tests.conform.rules.data import (
    test_fetch_rules,
    test_fetch_sessions,
    test_log_consistency,
    test_produce_rules,
    test_producers,
    test_record_batches,
    test_record_contents,
    test_transactions,
)
from tests.conform.scene import BREAKS, KEEPS, MEASURED, Case, Scene, capture_rules
from tests.corpus import fast_and_long
from tests.dissector.cli.cli_traffic import request_frame, response_frame

PRODUCE, METADATA = 0, 3

CAPTURES = [path for path in corpus.CAPTURES if path.stat().st_size < 1_000_000]
PLAIN = sorted((Path(__file__).parents[3] / "captures").glob("*.pcap"))
SMALL = [path for path in PLAIN if path.stat().st_size < 60_000]

SCREENS: list[Screen] = [rule.screen for rule in capture_rules() if rule.screen is not None]


@pytest.fixture(autouse=True)
def screened_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screen messages of each kind, and summarise batches, however few."""
    monkeypatch.setattr(layout_table, "MIN_MESSAGES", 1)
    monkeypatch.setattr(batch_summaries, "MIN_SUMMARY_BYTES", 0)


class _NoScreens(WindowScreens):
    """Lets no exchange pass."""

    def apply(self, rows: ScreenedRows, batches: FieldBatches) -> ScreenedWindow:
        screened = super().apply(rows, batches)
        screened.passed = [NOTHING] * len(rows.table)
        return screened


def _result(verdict: Verdict) -> dict[str, Any]:
    counts = {
        name: (tally.judged, tally.broken, dict(tally.unjudged))
        for name, tally in verdict.tallies.items()
    }
    findings = [(str(kind.first), kind.count, kind.findings) for kind in verdict]
    return {"counts": counts, "findings": findings, "faults": list(verdict.faults)}


def _assert_same(opened: Callable[[], Capture], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a capture gets the same verdict with and without screens."""
    screened = _result(Judge(capture_rules(), MEASURED).judge_capture(opened()))
    with monkeypatch.context() as patch:
        patch.setattr("conform.judge.WindowScreens", _NoScreens)
        plain = _result(Judge(capture_rules(), MEASURED).judge_capture(opened()))
    assert screened == plain


def _each_capture() -> Any:
    short = corpus.fast("verdicts")
    marks = {path: () if path in short else pytest.mark.long for path in CAPTURES}
    chosen = [pytest.param(path, id=path.name, marks=mark) for path, mark in marks.items()]
    return pytest.mark.parametrize("path", chosen)


@_each_capture()
def test_verdicts_of_captures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _assert_same(lambda: open_capture(path), monkeypatch)


@pytest.mark.parametrize("seed", fast_and_long(range(5), range(5, 300)))
def test_verdicts_of_damaged_captures(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    head, packets = packets_of(random.choice(SMALL))
    for mutation in random.sample([*MUTATIONS, spoil, spoil], 2):
        packets = mutation(packets, random) or packets[:1]
    file = file_of(head, packets)
    _assert_same(lambda: open_capture("-", stdin=io.BytesIO(file)), monkeypatch)


@pytest.mark.parametrize("seed", fast_and_long(range(5), range(5, 300)))
def test_verdicts_of_odd_values(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    file = with_odd_fields(random.choice(SMALL), random)
    _assert_same(lambda: open_capture("-", stdin=io.BytesIO(file)), monkeypatch)


MODULES = {
    each.__name__: each.__name__.rpartition(".")[2]
    for each in (
        test_fetch_rules,
        test_fetch_sessions,
        test_log_consistency,
        test_produce_rules,
        test_producers,
        test_record_batches,
        test_record_contents,
        test_transactions,
    )
}
SCENES: dict[str, Case] = {
    f"{MODULES[case.__module__]}-{case.__name__}": case
    for cases in (*BREAKS.values(), *KEEPS.values())
    for case, _ in cases
    if case.__module__ in MODULES
}


def in_the_middle() -> Scene:
    """Return a scene that begins in the middle of a connection, and has a late Fetch."""
    scene = Scene()
    connection = scene.connect(syn=False)
    for number in range(1, 4):
        connection.request(METADATA, 9, number, topics=None).response(METADATA, 9, number)
    for number in range(4, 7):
        fetch_request(connection, number, {0: 10})
        scene.wait_ms(3000 * (number % 2))
        fetch_response(connection, number, {0: {}})
    return scene


def test_what_is_not_judged_in_the_middle_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    called: Counter[str] = Counter()
    found = []
    for least in (1, 1 << 30):
        monkeypatch.setattr(layout_table, "MIN_MESSAGES", least)
        called.clear()
        verdict = in_the_middle().judge([_counting(each, called) for each in capture_rules()])
        shown = {
            name: (each.judged, list(each.unjudged.items()))
            for name, each in verdict.tallies.items()
        }
        found.append((shown, called["F02"]))
    assert found[0][0] == found[1][0]
    assert found[0][0]["F02"] == (0, [("the capture begins in the middle of the connection", 6)])
    assert [calls for _, calls in found] == [0, 6]


def _counting(rule: Rule, called: Counter[str]) -> Rule:
    """Return a rule whose calls are counted."""

    def call(observation: Any, reporter: Any) -> None:
        called[rule.id] += 1
        rule.call(observation, reporter)

    return replace(rule, call=call)


def test_a_batch_that_ends_beyond_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    connection = scene.connect()
    fetch_request(connection, 1, {0: -(2**63)})
    first = edited(batch(), base_offset=2**63 - 3, last_offset_delta=9)
    second = edited(batch(), base_offset=20)
    fetch_response(connection, 1, {0: {"records": first + second}})
    file = tcp_captures.pcap_file(scene.wire.packets)
    _assert_same(partial(_opened, file), monkeypatch)
    assert scene.judge(capture_rules()).tallies["X01"].broken == 1


@pytest.mark.parametrize("name", sorted(SCENES))
def test_verdicts_of_scenes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tcp_captures.pcap_file(SCENES[name]().wire.packets)
    _assert_same(partial(_opened, file), monkeypatch)


def _opened(file: bytes) -> Capture:
    return open_capture("-", stdin=io.BytesIO(file))


@pytest.mark.parametrize(
    ("rule", "fields"), [("B07", {"base_offset": 12}), ("B18", {"producer_id": 7})]
)
def test_faults_of_headers_need_no_decoded_message(
    rule: str, fields: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those findings decode their message that are retained in full."""
    scene = Scene()
    connection = scene.connect()
    for number in range(2 * MAX_FINDINGS_PER_KIND):
        produce(connection, number, edited(batch(), **fields))
    decoded: list[Exchange] = []
    decode = Exchange._decoded_request
    monkeypatch.setattr(
        Exchange, "_decoded_request", lambda each: (decoded.append(each), decode(each))[1]
    )
    capture = _opened(tcp_captures.pcap_file(scene.wire.packets))
    rules = [each for each in capture_rules() if each.on == "batch" and each.id[0] == "B"]
    verdict = Judge(rules).judge_capture(capture)
    assert verdict.tallies[rule].broken == 2 * MAX_FINDINGS_PER_KIND
    assert len(set(map(id, decoded))) == len(decoded) == MAX_FINDINGS_PER_KIND


CANONICAL, KEYS, RANGES, CODES = (
    next(rule.screen for rule in capture_rules() if rule.id == name and rule.screen)
    for name in ("E01", "A01", "N01", "C01")
)
ALL = {CANONICAL, KEYS, RANGES, CODES}
NO_RESULT_WITH_ERROR, HAS_RESULT = (
    next(rule.screen for rule in capture_rules() if rule.id == name and rule.screen)
    for name in ("C03", "C05")
)

REQUEST = request_frame(METADATA, 9, 1, topics=[{"name": "orders"}])
RESPONSE = response_frame(METADATA, 9, 1, topics=[{"name": "orders"}], cluster_id="c")


def _passed(request: bytes, response: bytes, of: Collection[Screen] = ALL) -> set[Screen]:
    """Return those of some screens that an exchange passes."""
    scene = Scene()
    scene.connect().client(request).broker(response)
    file = io.BytesIO(tcp_captures.pcap_file(scene.wire.packets))
    screens = WindowScreens(each.test for each in of)
    (table,) = [
        each.exchanges for each in open_capture("-", stdin=file).windows() if len(each.exchanges)
    ]
    batches = PlainBatches(table, BatchSummaries(table), screens.bits)
    states = {0: ConnectionState(0, "client", "broker")}
    columns = screened_rows(table, states, CaptureState(), batches, np.zeros(1, np.bool_))
    (passed,) = screens.apply(columns, batches.fields).passed
    return {each for each in of if screens.bits[each.test] & passed}


def _changed(frame: bytes, old: bytes, new: bytes) -> bytes:
    """Return a frame, behind its size, with other bytes in one place."""
    assert frame.count(old) == 1
    frame = frame[4:].replace(old, new)
    return len(frame).to_bytes(4, "big") + frame


def test_a_usual_exchange_passes_all() -> None:
    assert _passed(REQUEST, RESPONSE) == ALL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\x07orders", b"\x87\x00orders"),  # a longer varint
        (b"\x07orders\x00", b"\x07orders\x01\x63\x00"),  # an unknown tag
        (b"\x07orders", b"\x07order\xff"),  # not UTF-8
        (b"\x07orders\x00\x01", b"\x07orders\x00\x02"),  # a boolean of 2
        (b"\x07orders", b"\x00"),  # an undeclared null
        (b"\x07orders", b"\x09orders"),  # a length behind the end
    ],
    ids=["varint", "tag", "text", "boolean", "null", "length"],
)
def test_what_is_not_canonical_passes_none(old: bytes, new: bytes) -> None:
    assert _passed(_changed(REQUEST, old, new), RESPONSE) == set()


def test_a_response_that_is_not_canonical_passes_none() -> None:
    assert _passed(REQUEST, _changed(RESPONSE, b"\x02c", b"\x82\x00c")) == set()


def test_limits_and_keys_of_fields() -> None:
    topics = [{"name": "orders", "error_code": 999}]
    late = response_frame(METADATA, 9, 1, topics=topics, throttle_time_ms=-20)
    assert _passed(REQUEST, late) == ALL - {RANGES, CODES}
    two = request_frame(METADATA, 9, 1, topics=[{"name": "orders"}, {"name": "orders"}])
    assert _passed(two, RESPONSE) == ALL - {KEYS}
    other = request_frame(METADATA, 9, 1, topics=[{"name": "orders"}, {"name": "order"}])
    assert _passed(other, RESPONSE) == ALL


@pytest.mark.parametrize("name", list(_FIRST_WITH_TOPIC_IDS_ONLY))
def test_topics_are_keyed_by_their_id_alone(name: str) -> None:
    """Rule E15 relies on it: screens of keys let no zero id pass."""
    version, topics = _FIRST_WITH_TOPIC_IDS_ONLY[name]
    found = api(api_keys()[name])
    assert found is not None
    siblings, _ = split_tagged(found.request.fields, version)
    (declared,) = (each for each in siblings if each.name == topics)
    assert distinct_key_fields(FieldPlace(declared, siblings, version, False))[0] == "topic_id"


@pytest.mark.parametrize(
    ("error", "offset", "passed"),
    [
        (0, 7, {NO_RESULT_WITH_ERROR, HAS_RESULT}),
        (6, -1, {NO_RESULT_WITH_ERROR, HAS_RESULT}),
        (-1, -1, {NO_RESULT_WITH_ERROR, HAS_RESULT}),
        (6, 7, {HAS_RESULT}),
        (-1, 7, {HAS_RESULT}),
        (0, -1, {NO_RESULT_WITH_ERROR}),
    ],
)
def test_results_of_produce_and_errors(error: int, offset: int, passed: set[Screen]) -> None:
    partition = {"index": 3, "error_code": error, "base_offset": offset}
    request = request_frame(
        PRODUCE, 9, 1, acks=-1, topic_data=[{"name": "orders", "partition_data": [{"index": 3}]}]
    )
    response = response_frame(
        PRODUCE, 9, 1, responses=[{"name": "orders", "partition_responses": [partition]}]
    )
    assert _passed(request, response, of=(NO_RESULT_WITH_ERROR, HAS_RESULT)) == passed
