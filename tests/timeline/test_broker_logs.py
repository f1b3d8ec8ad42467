"""Events agree with the logs of the captured brokers, and with the scripted actions."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from tests.timeline.events_of import only
from timeline.events.event import Event
from timeline.public import timeline


class Line(NamedTuple):
    """A line of a broker's log."""

    time_ns: int
    text: str


class Told:
    """A capture, with the broker's log and the scripted actions of the same time."""

    def __init__(self, shared: Path, name: str, capture: str = "") -> None:
        folder = shared / "repro" / "clusters"
        self._actions = (folder / f"{name}.truth").read_text().splitlines()
        self._log = (folder / f"{name}.broker.log").read_text().splitlines()
        self.capture = folder / (capture or f"{name}.pcap.gz")

    def events(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds."""
        return list(timeline(self.capture, kinds=kinds))

    def lines(self, pattern: str) -> list[tuple[Line, re.Match[str]]]:
        """Return the lines of the log that match."""
        found = []
        for text in self._log:
            if (match := re.search(pattern, text)) and (stamp := re.match(r"\[([^]]+)\]", text)):
                found.append((Line(self._time_ns(stamp[1]), text), match))
        return found

    def action_ns(self, words: str) -> int:
        """Return the time of an action."""
        line = next(each for each in self._actions if words in each)
        return int(float(line.split()[1]) * 1e9)

    def _time_ns(self, stamp: str) -> int:
        """Return a time of the log, which has the clock of the actions without its zone."""
        clock, epoch_s = self._actions[0].split()[:2]
        logged = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f")
        began = datetime.combine(logged.date(), datetime.strptime(clock, "%H:%M:%S.%f").time())
        return int((float(epoch_s) + (logged - began).total_seconds()) * 1e9)


def test_transactions(shared: Path) -> None:
    told = Told(shared, "txn")
    events = told.events("transaction")
    initialized = told.lines(
        r"Initialized transactionalId (\S+) with producerId (\d+) and .* (\d+) on"
    )
    assert [
        (each.subject, *re.findall(r"producer id (\d+), epoch (\d+)", each.text)[0])
        for each in only(events, "initialized")
    ] == [match.groups() for _, match in initialized]
    overdue = [each for each in only(events, "aborted") if each.cause == "transaction timeout"]
    rollbacks = told.lines(r"Completed rollback .* for transactionalId (\S+) due to timeout")
    assert len(overdue) == len(rollbacks)
    for event, (line, match) in zip(overdue, rollbacks, strict=True):
        assert (event.subject, event.certain) == (match[1], True)
        assert event.time_ns < line.time_ns < event.end_ns
    assert not only(events, "left open")
    (fencing,) = (each for each in only(events, "initialized") if each.cause == "new producer")
    assert "java-first at 127.0.0.1 in epoch 27 is fenced" in fencing.text


def test_a_coordinator_that_restarts(shared: Path) -> None:
    told = Told(shared, "secure", "coordinator-restart.pcapng.gz")
    events = told.events("group")
    (restarted,) = only(events, "coordinator restarted")
    assert told.action_ns("graceful stop") < restarted.time_ns < told.action_ns("stopped")
    (loaded, _), *_ = told.lines("Loaded classic group g-open")
    assert restarted.time_ns < loaded.time_ns < told.action_ns("end open")
    (_, first), (preparing, second) = told.lines(r"Preparing to rebalance .* \(reason: ([^;]+)")[:2]
    assert first[1].startswith("Adding new member ck-cons-76ad2714")
    assert second[1].startswith("Adding new member ck-cons-9ebbd766")
    rebalance = only(events, "rebalance")[1]
    assert rebalance.cause == "coordinator restarted"
    assert "ck-cons-9ebbd766 joined, after the coordinator was away" in rebalance.text
    assert abs(rebalance.time_ns - preparing.time_ns) < 100_000_000
    refused = only(events, "commit refused")
    assert {each.text.partition(" in generation")[0] for each in refused} == {
        "OffsetCommit of ck-cons-76ad2714, without its id,"
    }


def test_a_topic_created_anew(shared: Path) -> None:
    told = Told(shared, "reborn")
    events = told.events("cluster", "producer", "consumer")
    assert not only(events, "leader moved") + only(events, "leader changed")
    (deleted,) = only(events, "topic deleted")
    assert abs(deleted.time_ns - told.action_ns("delete reborn")) < 100_000_000
    anew = [each for each in only(events, "topic created anew") if each.kind == "cluster"]
    assert [each.subject for each in anew] == ["127.0.0.1:21188"]
    assert abs(anew[0].end_ns - told.action_ns("create reborn again")) < 100_000_000
    logged = [
        told.lines(f"{kind} for topic reborn with (?:topic )?ID ([^. ]+)")[0][1][1]
        for kind in ("RemoveTopicRecord", " TopicRecord")
    ]
    ids = [str(UUID(bytes=urlsafe_b64decode(f"{each}=="))) for each in logged]
    assert f"topic id {ids[0]} before, {ids[1]} now" in anew[0].text
    clients = [each for each in events if each.kind != "cluster" and each.event == anew[0].event]
    assert len(clients) == 5
    assert {each.cause for each in clients} == {"UNKNOWN_TOPIC_OR_PARTITION"}


def test_causes_of_rebalances(shared: Path) -> None:
    told = Told(shared, "crash")
    words = {"Adding": "joined", "Leader": "leader rejoined", "explicit": "left"}
    pattern = r"Preparing to rebalance .* with old generation (\d+) \(reason: (\w+)"
    logged = {int(match[1]) + 1: words[match[2]] for _, match in told.lines(pattern)}
    events = only(told.events("group"), "rebalance")
    found = {
        int(re.findall(r"generation (?:\d+ to )?(\d+):", each.text)[0]): each.cause
        for each in events
    }
    assert all(each.certain for each in events)
    assert found == {number: word for number, word in logged.items() if number in found}
    assert len(found) == 4
