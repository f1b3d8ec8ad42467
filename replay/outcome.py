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
    version or order. `differs`: fields differ. `error_changed`: an error code differs. `missing`:
    no answer, where one was captured. `incomplete`: it differs, and goes by what the capture lacks,
    as it begins midway or has gaps. `extra`: an answer where none was captured. `left_out`: the
    step was not sent, or the replay ended before it was answered.
    """

    SAME = "same"
    EQUIVALENT = "equivalent"
    DIFFERS = "differs"
    ERROR_CHANGED = "error_changed"
    MISSING = "missing"
    INCOMPLETE = "incomplete"
    EXTRA = "extra"
    LEFT_OUT = "left_out"


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
    """

    path: str
    captured: Any
    replayed: Any
    is_error: bool = False
