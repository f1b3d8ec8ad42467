"""What became of a step: what was sent for it, and what the target answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from construct import Container

from replay.arrays import Ints
from replay.step import Step


class Verdict(StrEnum):
    """
    How an answer compares with the captured one.

    `same`: nothing differs but what was substituted. `equivalent`: the same meaning in another
    version or order; `Reason` says why. `accepted`: it differs only as `--accept` or `--upgrade`
    allow. `differs`: fields differ. `error_changed`: an error code differs. `missing`: no answer,
    where one was captured. `incomplete`: it differs, and goes by what the capture lacks, as it
    begins midway or has gaps. `extra`: an answer where none was captured. `not_judged`: it was
    sent, and the replay ended or gave up before the answer. `left_out`: it was not sent.
    """

    SAME = "same"
    EQUIVALENT = "equivalent"
    ACCEPTED = "accepted"
    DIFFERS = "differs"
    ERROR_CHANGED = "error_changed"
    MISSING = "missing"
    INCOMPLETE = "incomplete"
    EXTRA = "extra"
    NOT_JUDGED = "not_judged"
    LEFT_OUT = "left_out"


class Reason(StrEnum):
    """Why an answer that is not the captured one means the same."""

    VERSION = "answered in another version"
    OVERLAP = "of before or after a change that went on meanwhile"
    SESSION = "asked without a fetch session, as several brokers are asked"
    ORDER = "the same elements in another order"
    RECORDS = "more or fewer records of the same log"
    MARKERS = "an offset before or after markers of transactions"
    MORE = "more or fewer elements where the broker chooses what it lists"
    INTERNAL = "an internal topic that the broker makes when it needs it"
    READY = "done at once where the captured broker was not ready"
    ELSEWHERE = "the captured broker was not the one to ask"
    MADE = "the topic was created for the replay before"
    AT_REST = "the group had come to rest sooner"
    ASSIGNED = "partitions assigned sooner"
    REBALANCE = "a rebalance announced sooner"
    REJOINED = "the member had to join again"
    LEADER = "another member leads the group"
    COUNT = "other partitions for a member, but as many"
    NULL = "null in one version, empty in the other"
    REFUSED = "refused alike, with another offset beside the error"
    IGNORED = "differs only in what --ignore or --noise name"


REJOINED = "rejoined"
"""The rule by which a member is in another generation: it joined again when told of a rebalance."""


@dataclass(frozen=True, slots=True)
class Change:
    """
    A value that was substituted on the way from the captured request to the one that was sent.

    Attributes:
        path: Of the field in the body: `topic_data[0].partition_data[0].index`.
        role: What the field means: the value of a `roles.Role`.
        captured: What it was.
        sent: What was sent instead.
        why: Which rule chose it, where there is a choice: `translated`, `earliest`, ...; or empty.
    """

    path: str
    role: str
    captured: Any
    sent: Any
    why: str = ""


@dataclass(slots=True)
class Part:
    """
    One request that was really sent; a step has several where partitions have several leaders.

    Attributes:
        node: Id of the broker of the target.
        version: Of the API.
        request: The body that was sent.
        response: The body that came back; None where none did.
    """

    node: int
    version: int
    request: Container
    response: Container | None = None


@dataclass(slots=True)
class Outcome:
    """
    What became of a step.

    Attributes:
        step: The step.
        copy: Number of the pass, where the capture is played more than once.
        parts: What was sent.
        version: The version in which the target was asked.
        response: The answers of all parts as one body in that version; None where there is none.
        changes: What was substituted in the request.
        latency_ns: From the request to the last answer; None where there is none.
        lag_ns: How much later than planned it was sent.
        failure: Why it was not sent or has no answer; empty where it has.
        is_refused: Whether we would not send it, or not wait for its answer, rather than the target
            not take or answer it.
        reasons: Why its answer is equivalent, as `compare` found.
    """

    step: Step
    copy: int = 0
    parts: list[Part] = field(default_factory=list)
    version: int = 0
    response: Container | None = None
    changes: list[Change] = field(default_factory=list)
    latency_ns: int | None = None
    lag_ns: int = 0
    failure: str = ""
    is_refused: bool = False
    reasons: frozenset[Reason] = frozenset()


@dataclass(slots=True)
class Alike:
    """
    Steps of one API that were answered just as captured.

    Attributes:
        api: The name of the API.
        numbers: Of the steps.
        lags_ns: How much later than planned each was sent.
        latencies_ns: From each request to its answer.
        changes: By role and rule: how often something was substituted.
    """

    api: str
    numbers: Ints
    lags_ns: Ints
    latencies_ns: Ints
    changes: Counter[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Difference:
    """
    A place where the live answer is not the captured one.

    Attributes:
        path: Of the field in the body; elements of arrays by their key fields:
            `responses[orders].partition_responses[0].error_code`.
        captured: The captured value, or None where it is not there.
        replayed: The live value, with what was substituted turned back; None likewise.
        is_error: Whether the field is an error code.
        is_default: Whether it is about a setting that has its default on both sides, or is only
            known to one.
    """

    path: str
    captured: Any
    replayed: Any
    is_error: bool = False
    is_default: bool = False
