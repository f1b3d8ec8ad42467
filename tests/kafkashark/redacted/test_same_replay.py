"""
A replay of a redacted capture ends as that of the capture itself, request by request.

All captures of the corpus are played at embedded brokers, which answer at other times each time. So
a step that differs is played again: one of the outcomes of the capture must be one of the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from replay.model.outcome import Verdict
from tests.corpus import CAPTURES, fast_and_long
from tests.kafkashark.redacted.played_steps import Job, Played, play_all
from tests.kafkashark.redacted.redacted_captures import Copy, redact
from tests.kafkashark.redacted.same_steps import is_same

_BY_INSTANCE = "librdkafka's mock elects the first instance id in alphabetical order as the leader"
_BY_REGEX = "a regular expression of the copy is a constant that matches no topic"

NEEDS_NAMES = {
    "kafka39-static-members.pcap": ("instance", _BY_INSTANCE),
    "kafka4-static-members.pcap": ("instance", _BY_INSTANCE),
    "kafka4-sweep-groups.pcap": ("regex,topic", _BY_REGEX),
}
"""Captures with other answers where names change -> `--keep` for the same answers, and why."""

FAST = (
    *("aiokafka-produce-codecs.pcap", "kafka4-librdkafka-acks.pcap"),
    *("kafka4-sweep-too-new.pcap", "librdkafka-idempotent.pcap"),
)
OTHERS = [path for path in CAPTURES if path.name not in FAST]
MOST_PLAYS = 8


class Plays(NamedTuple):
    """
    The plays of a capture and of its redacted copy.

    Attributes:
        copy: Both.
        before: The plays of the capture.
        after: The plays of the copy.
    """

    copy: Copy
    before: list[Played]
    after: list[Played]

    def differing(self) -> list[int]:
        """Return the steps without a common outcome."""
        return [
            number
            for number in range(len(self.before[0].planned))
            if not any(
                is_same(one.steps[number], other.steps[number], self.copy.names)
                for one in self.before
                for other in self.after
            )
        ]


def play_both(plays: Sequence[Plays]) -> None:
    """Play captures and their copies once more."""
    jobs = [
        job
        for copy in (each.copy for each in plays)
        for job in (Job(copy.capture, copy.keylogs), Job(copy.redacted))
    ]
    played = play_all(jobs)
    for each, before, after in zip(plays, played[::2], played[1::2], strict=True):
        each.before.append(before)
        each.after.append(after)


def played(copies: Iterable[Copy], most: int = MOST_PLAYS) -> dict[str, Plays]:
    """Play captures and copies until no step differs, or often enough to call it a difference."""
    every = [Plays(copy, [], []) for copy in copies]
    again = every
    for _ in range(most):
        play_both(again)
        again = [each for each in again if each.differing()]
        if not again:
            break
    return {each.copy.capture.name: each for each in every}


def captures(names: Iterable[str]) -> list[Path]:
    return [path for path in CAPTURES if path.name in names]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "paths",
    fast_and_long([captures(FAST)], [OTHERS[::2], OTHERS[1::2]]),
    ids=["fast", "first half", "second half"],
)
def test_the_same_outcome_of_each_request(paths: list[Path], tmp_path: Path) -> None:
    copies = [redact(path, tmp_path, NEEDS_NAMES.get(path.name, [""])[0]) for path in paths]
    assert_one_to_one(copy for copy in copies if copy.capture.name not in NEEDS_NAMES)
    for name, plays in played(copies).items():
        before, after = plays.before[0], plays.after[0]
        assert before.planned == after.planned, name
        verdicts = {step.verdict for step in before.steps.values()}
        assert verdicts - {Verdict.LEFT_OUT}, f"{name}: nothing is sent"
        differing = [(n, before.steps[n], after.steps[n]) for n in plays.differing()]
        assert not differing, name


def assert_one_to_one(copies: Iterable[Copy]) -> None:
    """With one key a name has one pseudonym in all captures, which no other name has."""
    names: dict[str, str] = {}
    for copy in copies:
        assert all(names.get(name, new) == new for name, new in copy.names.items())
        names |= copy.names
    assert len(set(names.values())) == len(names)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_reasons_of_exceptions_hold(tmp_path: Path) -> None:
    copies = [redact(path, tmp_path) for path in captures(NEEDS_NAMES)]
    same = [name for name, plays in played(copies, 2).items() if not plays.differing()]
    assert same == [], "remove them from NEEDS_NAMES"
