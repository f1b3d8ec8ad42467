"""The judge: losses, ends, software, and independence of windows."""

from __future__ import annotations

import gc
import io
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from conform.evidence.observation import ConnectionState, Observation
from conform.evidence.reporter import Reporter
from conform.judge import Judge
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from conform.registry.verdict import Verdict
from conform.report.report_formats import verdict_check
from conform.report.verdict_text import count_text
from conform.rule_budgets import RuleBudget
from conform.rules import REGISTRY
from dissector import Capture, Options
from dissector.cli.declared.check_options import FORMATS
from tests import tcp_captures
from tests.conform.scene import Scene, broken, capture_rules, findings

CAPTURES = Path(__file__).parents[2] / "captures"
METADATA, API_VERSIONS = 3, 18


def _out_of_order(*, syn: bool = True, software: str = "shop") -> Scene:
    scene = Scene()
    connection = scene.connect(syn=syn)
    connection.request(
        API_VERSIONS, 3, 0, client_software_name=software, client_software_version="1.2"
    ).response(API_VERSIONS, 3, 0, api_keys=[{"api_key": k, "max_version": 13} for k in (3, 18)])
    for number in (1, 2, 3):
        connection.request(METADATA, 9, number, topics=None)
    for number in (2, 3, 1):
        connection.response(METADATA, 9, number)
    return scene


def test_a_complete_connection_is_judged() -> None:
    verdict = _out_of_order().judge()
    (finding,) = [each for each in findings(verdict) if each.rule.id == "F03"]
    assert (finding.client, finding.broker) == ("10.0.0.1:50001", "10.0.0.2:9092")
    assert (finding.side, finding.software, finding.packet) == ("broker", "", 18)


def test_a_missing_beginning_of_a_connection() -> None:
    verdict = _out_of_order(syn=False).judge()
    assert broken(verdict) == []
    why = "the capture begins in the middle of the connection"
    assert verdict.tallies["F03"].unjudged == {why: 4}


def test_a_missing_beginning_of_one_side() -> None:
    scene = _out_of_order()
    scene.wire.packets = [p for p in scene.wire.packets if p.side == 0 or p.payload][:]
    assert broken(scene.judge()) == []


@pytest.mark.parametrize("number", range(1, 7))
def test_a_lost_packet(number: int) -> None:
    scene = _out_of_order()
    scene.lose(number)
    verdict = scene.judge()
    assert broken(verdict) == []


def test_a_truncated_packet() -> None:
    scene = _out_of_order()
    scene.cut(3, 5)
    verdict = scene.judge()
    assert broken(verdict) == []
    assert "packets of the connection are truncated" in verdict.tallies["F03"].unjudged


def test_connections_are_independent() -> None:
    scene = Scene()
    first, second = scene.connect(), scene.connect()
    first.request(METADATA, 9, 1, topics=None)
    second.request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    first.response(METADATA, 9, 1)
    assert broken(scene.judge()) == []


def test_rules_not_selected_are_not_called() -> None:
    rules = [rule for rule in capture_rules() if rule.id == "F04"]
    verdict = _out_of_order().judge(rules)
    assert list(verdict.tallies) == ["F04"]
    assert not verdict.kinds


def _findings(path: Path, window_bytes: int) -> list[str]:
    options = Options(window_bytes=window_bytes)
    verdict = Judge(capture_rules()).judge_capture(Capture([path], options))
    return [*verdict_check(verdict, "it").lines("text"), *_tallies(verdict)]


def _tallies(verdict: Verdict) -> list[str]:
    return [f"{name} {tally.judged} {tally.broken}" for name, tally in verdict.tallies.items()]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["demo.pcap", "librdkafka-acks.pcap", "kafka4-throttled.pcap"])
def test_the_verdict_does_not_depend_on_windows(name: str) -> None:
    assert _findings(CAPTURES / name, 4096) == _findings(CAPTURES / name, 1 << 28)


@pytest.mark.long
def test_the_state_of_a_connection_is_released_at_its_end() -> None:
    """Except that of the newest observation."""
    scene = Scene()
    for _ in range(4):
        scene.connect().request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1).fin()
    scene.connect().request(METADATA, 9, 1, topics=None).response(METADATA, 9, 1)
    states: list[weakref.ref[ConnectionState]] = []

    def watch(observation: Observation, _: Reporter) -> None:
        states.append(weakref.ref(observation.connection))

    seen = Rule("Z01", "", Severity.NOTE, "", "", "", "exchange", ("Metadata",), watch)
    judge = Judge([*capture_rules(), seen])
    file = io.BytesIO(tcp_captures.pcap_file(scene.wire.packets))
    capture = Capture(["-"], Options(stdin=file))
    for window in capture.windows():
        judge.judge_window(capture, window)
    del window
    gc.collect()
    assert [each() is None for each in states[:3]] == [True] * 3
    assert states[-1]() is not None
    judge.finish()
    gc.collect()
    assert [each() for each in states[:4]] == [None] * 4


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["demo.pcap", "kafka4-librdkafka-transactions.pcap"])
def test_rules_do_not_keep_observations_in_memory(name: str) -> None:
    # Each keeps the bytes of its window in memory; idle connections would keep many windows.
    judge, capture = Judge(capture_rules()), Capture([CAPTURES / name])
    windows = []
    for window in capture.windows():
        windows.append(weakref.ref(window.exchanges.data))
        judge.judge_window(capture, window)
        del window
    gc.collect()
    assert len([each for each in windows if each() is not None]) <= 2
    judge.finish()


def _fails(observation: object, reporter: object) -> None:
    raise ZeroDivisionError("quotes what may be secret")


def test_an_exception_in_a_rule_does_not_end_the_judge() -> None:
    fails = replace(REGISTRY["F01"], call=_fails, fast_check=None, id="F99")
    verdict = _out_of_order().judge([*capture_rules(), fails])
    assert "F03" in broken(verdict)
    (fault,) = verdict.faults.values()
    assert (fault.rule, fault.count) == ("F99", verdict.tallies["F99"].unjudged.total())
    assert fault.error.startswith("ZeroDivisionError in test_judge.py line ")
    lines = list(verdict_check(verdict, "it").lines("text"))
    assert any(line.startswith(f"  {count_text(fault.count)}: F99 failed: Zero") for line in lines)
    assert lines[-1].endswith("; 1 rule failed")
    for form in FORMATS:
        text = "\n".join(verdict_check(verdict, "it").lines(form))
        assert "F99 failed" in text or '"section": "fault"' in text
        assert "secret" not in text


def test_an_exception_in_the_quick_check_leaves_its_rules_to_judge() -> None:
    def fails(observation: object) -> int:
        raise ZeroDivisionError

    order = replace(REGISTRY["F03"], fast_check=fails)
    verdict = _out_of_order().judge([order])
    assert broken(verdict) == ["F03"]
    assert [fault.rule for fault in verdict.faults.values()] == [""]


def test_a_rule_beyond_its_time_is_not_judged_any_further() -> None:
    calls = []
    rule = replace(REGISTRY["F01"], call=lambda *_: calls.append(1), fast_check=None, on="exchange")
    judge = Judge([rule], RuleBudget(seconds=0, seconds_per_mib=0))
    verdict = judge.judge_capture(Capture([CAPTURES / "demo.pcap"]))
    assert len(calls) == 1
    lines = list(verdict_check(verdict, "it").lines("text"))
    reason = "not judged any further: the rule reached its budget of 0 s of processor time"
    assert f"  once: {reason} (F01)" in lines
    assert lines[-1].endswith("; 1 rule stopped at a budget")
    assert not verdict.faults


def test_a_rule_beyond_its_memory_is_not_judged_any_further() -> None:
    rules = [REGISTRY["M06"], REGISTRY["M07"]]
    judge = Judge(rules, RuleBudget(state_bytes=8000, bytes_between=1))
    verdict = judge.judge_capture(Capture([CAPTURES / "demo.pcap"], Options(window_bytes=4096)))
    assert [each.is_stopped for each in verdict.tallies.values()] == [False, True]
    (reason,) = verdict.tallies["M07"].unjudged
    assert reason.endswith(" MiB of memory")
    assert 0 < verdict.tallies["M07"].judged < verdict.tallies["M06"].judged
    assert not verdict.faults


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["demo.pcap", "kafka4-librdkafka-transactions.pcap"])
def test_budgets_are_far_above_usual_captures(name: str) -> None:
    judge = Judge(capture_rules(), RuleBudget(state_bytes=4 << 20, bytes_between=1))
    verdict = judge.judge_capture(Capture([CAPTURES / name]))
    assert not any(tally.is_stopped for tally in verdict.tallies.values())
