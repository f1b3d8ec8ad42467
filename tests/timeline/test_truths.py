"""Events against what scripts did and brokers logged, and in captures of reported situations."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import MADE
from timeline.events.event import Event
from timeline.public import timeline

REPRO = Path(__file__).parents[3] / "shared" / "repro"

DENIED = re.compile(
    r"Principal = User:(\w+) is Denied .* on resource = (\w+):LITERAL:([\w-]+) for request = (\w+)"
)


def events_of_file(*path: str) -> list[Event]:
    """Return the events of a capture; skip the test if it is not at hand."""
    file = REPRO.joinpath(*path)
    if not file.exists():
        pytest.skip("the capture is not at hand")
    return list(timeline(file))


def lines_of(name: str) -> list[str]:
    """Return the lines of a log of a cluster."""
    return (REPRO / "clusters" / name).read_text(encoding="utf-8").splitlines()


def action_ns(name: str, words: str) -> int:
    """Return the time of a scripted action."""
    line = next(each for each in lines_of(name) if words in each)
    return int(float(line.split()[1]) * 1e9)


@pytest.mark.parametrize(
    ("name", "logins"),
    [
        ("oauth_fail.pcap", [("login failed", "SASL_AUTHENTICATION_FAILED", 3)]),
        ("oauth_fail_clientcloses.pcap", [("login failed", "invalid_token", 2)]),
        ("gssapi_v1_ok.pcap", [("logged in", "", 4)]),
    ],
)
def test_a_login_has_one_event(name: str, logins: list[tuple[str, str, int]]) -> None:
    found = list(timeline(MADE / name))
    assert [
        (each.event, each.cause, len(each.evidence)) for each in found if "log" in each.event
    ] == logins


@pytest.mark.parametrize(
    ("name", "cause", "seconds", "words"),
    [
        ("azure_idle_drop.pcap", "network", 60, "8 retransmissions"),
        ("hung_broker_noclose.pcap", "broker", 90, "acknowledged by TCP, and not answered"),
    ],
)
def test_a_request_that_hangs(name: str, cause: str, seconds: int, words: str) -> None:
    (event,) = (each for each in list(timeline(MADE / name)) if each.event == "unanswered")
    assert (event.cause, event.certain) == (cause, True)
    assert round((event.end_ns - event.time_ns) / 1e9) == seconds
    assert words in event.text
    assert [each.correlation_id for each in event.evidence] == [2]


def test_denials_are_those_that_the_broker_logged() -> None:
    found = events_of_file("clusters", "acl-denied.pcapng.gz")
    shown = Counter[tuple[str, str, str, str]]()
    for each in found:
        if each.event == "denied":
            match = re.fullmatch(r"(\w+): (\w+) ([\w-]+) denied to User:(\w+)", each.text)
            assert match
            api, kind, name, user = match.groups()
            shown[user, kind.capitalize(), name, api] += each.count
    logged = Counter(
        match.groups() for line in lines_of("secure.broker.log") if (match := DENIED.search(line))
    )
    assert shown == logged
    assert sum(shown.values()) == 10


def test_each_refused_commit_is_an_event() -> None:
    found = events_of_file("clusters", "crash.pcap.gz")
    refused = [each for each in found if each.event == "commit refused"]
    assert {each.cause for each in refused} == {"COORDINATOR_NOT_AVAILABLE"}
    assert sum(each.count for each in refused) == 2
    assert len({each.evidence[0].client_id for each in refused}) == 2


def test_requests_to_a_killed_broker_end_when_it_is_killed() -> None:
    found = events_of_file("clusters", "crash.pcap.gz")
    killed_ns, started_ns = (
        action_ns("crash.truth", f"{word} node 2") for word in ("SIGKILL", "start")
    )
    unanswered = [each for each in found if each.event == "unanswered"]
    assert {each.evidence[0].broker.rpartition(":")[2] for each in unanswered} == {"29242"}
    first = min(unanswered, key=lambda each: each.time_ns)
    assert abs(first.end_ns - killed_ns) < 0.5e9
    (refused,) = (each for each in found if each.event == "connect failed")
    assert killed_ns < refused.time_ns < started_ns


def test_events_stand_at_their_own_time() -> None:
    found = events_of_file("clusters", "crash.pcap.gz")
    assert [each.time_ns for each in found] == sorted(each.time_ns for each in found)
    (produces,) = (each for each in found if each.event == "produces")
    times = {action_ns("crash.truth", f"{word} prod") for word in ("start", "end")}
    assert min(times) < produces.time_ns < produces.end_ns < max(times)
