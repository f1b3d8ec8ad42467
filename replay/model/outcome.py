"""The outcome of a step: the requests sent for it, and the target's responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from construct import Container

from cluster.conversion.change import Change
from dissector.capture.columns import Int64s
from replay.model.step import Step


class Verdict(StrEnum):
    """
    The verdict on a response, compared with the captured one.

    `same`: equal apart from substituted values. `equivalent`: the same meaning in another version
    or order; `Reason` explains why. `accepted`: it differs only as `--accept` or `--upgrade` allow.
    `differs`: fields differ. `error_changed`: an error code differs. `missing`: no response,
    although one was captured. `incomplete`: it differs and depends on something that the capture
    lacks, because it begins midway or has gaps. `extra`: a response although none was captured.
    `not_judged`: it was sent, but the replay ended or gave up before the response. `left_out`: it
    was not sent.
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
    """Why a response that differs from the captured one is equivalent."""

    VERSION = "answered in another version"
    OVERLAP = "the state before or after a concurrent change"
    SESSION = "sent without a fetch session, as it goes to several brokers"
    ORDER = "the same elements in another order"
    RECORDS = "more or fewer records of the same log"
    MARKERS = "an offset before or after transaction markers"
    MORE = "more or fewer elements of a list that the broker chooses"
    INTERNAL = "an internal topic that the broker creates on demand"
    READY = "succeeded at once where the captured broker was not ready"
    FIRST_EPOCH = "an empty log with or without the leader epoch of its start"
    ELSEWHERE = "the captured request went to the wrong broker"
    MADE = "the topic was created before, for the replay"
    AT_REST = "the group became stable sooner"
    ASSIGNED = "partitions assigned sooner"
    REBALANCE = "a rebalance reported sooner"
    REJOINED = "the member had to join again"
    DUPLICATE = "sent again, and the records were in the log already"
    LEADER = "another member leads the group"
    COUNT = "a member has other partitions, but as many"
    NULL = "null in one version, empty in the other"
    SHARED = "other records of a share group, which gives each to any member"
    READ_ALIKE = "null and empty, which clients read alike"
    REFUSED = "the same error, with another offset beside it"
    IGNORED = "differs only in fields that --ignore or --noise cover"


REJOINED = "rejoined"
"""The rule for a member in another generation, because it joined again after a rebalance."""


HELD = "held"
"""The rule for acknowledgements of other records of a share group than captured."""


@dataclass(slots=True)
class RequestPart:
    """
    A request that was sent; a step has several if its partitions have several leaders.

    Attributes:
        node: Id of the broker of the target.
        version: The API version.
        request: The body of the request.
        response: The body of the response; None without one.
    """

    node: int
    version: int
    request: Container
    response: Container | None = None


@dataclass(slots=True)
class Outcome:
    """
    The outcome of a step.

    Attributes:
        step: The step.
        pass_number: Number of the pass, if the capture is replayed more than once.
        parts: The requests sent.
        version: The API version used with the target.
        response: The merged body of all parts' responses, in that version; None without one.
        changes: The substitutions in the request.
        latency_ns: Time from the request to the last response; None without one.
        lag_ns: Delay of the request after its planned time.
        waited_ns: Time it had waited for its response when the replay ended.
        failure: Reason for the missing response; empty with a response.
        is_refused: Whether the failure is our decision not to send the request, or not to wait for
            its response, rather than a failure of the target.
        is_unsupported: Whether we did not send it because the target has no API or version for it.
        is_repeated: Whether it was sent again after a temporary error.
        is_untimely: Whether its error depends on when brokers look for timeouts of transactions.
        reasons: Why its response is equivalent, as `compare_outcome` found.
        unasked: Topic (name or id, as captured) and number of partitions without captured records
            that a Fetch did not ask for.
    """

    step: Step
    pass_number: int = 0
    parts: list[RequestPart] = field(default_factory=list)
    version: int = 0
    response: Container | None = None
    changes: list[Change] = field(default_factory=list)
    latency_ns: int | None = None
    lag_ns: int = 0
    waited_ns: int = 0
    failure: str = ""
    is_refused: bool = False
    is_unsupported: bool = False
    is_repeated: bool = False
    is_untimely: bool = False
    reasons: frozenset[Reason] = frozenset()
    unasked: Collection[tuple[Any, int]] = ()


@dataclass(slots=True)
class BatchedOutcome:
    """
    The outcome of steps of one API with responses that matched the captured ones on the fast path.

    Attributes:
        api: The name of the API.
        step_numbers: The numbers of the steps.
        lags_ns: Delay of each request after its planned time.
        latencies_ns: Time from each request to its response.
        changes: Role and rule -> number of substitutions.
        pass_number: Number of the pass.
    """

    api: str
    step_numbers: Int64s
    lags_ns: Int64s
    latencies_ns: Int64s
    changes: Counter[tuple[str, str]]
    pass_number: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """
    A place where the live response differs from the captured one.

    Attributes:
        path: The path of the field in the body; elements of arrays by their key fields:
            `responses[orders].partition_responses[0].error_code`.
        captured: The captured value, or None if it is absent.
        replayed: The live value, mapped back to captured terms, or None if it is absent.
        is_error: Whether the field is an error code.
        is_default: Whether it concerns a setting with its default on both sides, or unknown to one
            side.
    """

    path: str
    captured: Any
    replayed: Any
    is_error: bool = False
    is_default: bool = False
