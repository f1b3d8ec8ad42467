"""Damage to a capture adds no certain events."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random

import pytest

from dissector import open_capture
from tests.conform.mutations import MUTATIONS, Mutation, file_of, packets_of, spoil
from tests.corpus import FOLDER, fast_and_long
from timeline.events.event import Event
from timeline.public import timeline

CAPTURES = (
    "kafka4-static-members.pcap",
    "kafka4-librdkafka-group-848.pcap",
    "kafka4-librdkafka-fenced.pcap",
    "kafka4-librdkafka-group-cooperative.pcap",
    "kafka4-leader-change.pcap",
    "kafka4-errors.pcap",
    "kafka39-streams.pcap",
    "kafka4-sweep-groups.pcap",
    "demo.pcap",
)
"""Captures with rebalances, fencing, transactions, errors, and leaders that move."""

SEEDS = range(3)

_VOLATILE = re.compile(r"connection \d+|\d+(\.\d+)? (ms|s|min)\b")
"""Numbers of connections and durations, which a damage changes."""


Claim = tuple[str, str, str, str]


def claims(events: Iterable[Event]) -> Iterator[tuple[Claim, str]]:
    """Yield the claims of events, with the first part of their texts without variable numbers."""
    for each in events:
        yield (
            (each.kind, each.subject, each.event, each.cause),
            _VOLATILE.sub("", each.text.partition("; ")[0]),
        )


@cache
def whole(name: str) -> dict[Claim, list[str]]:
    """Return the claims of the whole capture."""
    found: dict[Claim, list[str]] = {}
    for claim, text in claims(timeline(FOLDER / name)):
        found.setdefault(claim, []).append(text)
    return found


def unfounded(name: str, damaged: Iterable[Event]) -> list[tuple[Claim, str]]:
    """Return the certain claims of a damaged capture missing in the whole one."""
    return [
        (claim, text)
        for claim, text in claims(each for each in damaged if each.certain)
        if not any(known.startswith(text) for known in whole(name).get(claim, ()))
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("name", "mutation", "seed"),
    fast_and_long(
        [(name, MUTATIONS[at % len(MUTATIONS)], 0) for at, name in enumerate(CAPTURES)],
        [(name, each, seed) for name in CAPTURES for each in MUTATIONS for seed in SEEDS],
    ),
)
def test_damage_adds_no_certain_events(name: str, mutation: Mutation, seed: int) -> None:
    head, packets = packets_of(FOLDER / name)
    file = file_of(head, mutation(packets, Random(f"{name} {mutation.__name__} {seed}")))
    assert not unfounded(name, timeline(open_capture("-", stdin=io.BytesIO(file))))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CAPTURES)
def test_each_event_has_evidence(name: str) -> None:
    for each in timeline(FOLDER / name):
        assert each.evidence
        assert all(proof.request_packet or proof.response_packet for proof in each.evidence)
        assert each.time_ns <= each.end_ns


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CAPTURES)
def test_events_come_in_time_order(name: str) -> None:
    times = [each.time_ns for each in timeline(FOLDER / name)]
    assert times == sorted(times)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CAPTURES)
def test_corrupted_bytes_raise_no_error(name: str) -> None:
    head, packets = packets_of(FOLDER / name)
    file = file_of(head, spoil(packets, Random(name)))
    for each in timeline(open_capture("-", stdin=io.BytesIO(file))):
        assert each.evidence
