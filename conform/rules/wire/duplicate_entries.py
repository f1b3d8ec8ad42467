"""A and N: lists and numbers in all messages, and items missing from or added to responses."""

from __future__ import annotations

import re
from typing import Any

from conform.evidence.duplicate_items import twice
from conform.evidence.observation import Turn
from conform.evidence.reporter import Say
from conform.evidence.requested_items import COVERS, names
from conform.evidence.value_ranges import too_low
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.messages import Message
from dissector.view.text.escape import quoted

_OTHERS_JUDGE = {
    "Metadata": re.compile(r"topics\[\d+\]"),
    "ApiVersions": re.compile(r"api_keys\[\d+\]"),
}
"""Lists whose duplicates other rules report: M01, V02."""

_MOST_TOLD = 3
"""Maximal number of findings of one rule in one message."""


def _bodies(turn: Turn) -> list[tuple[Side, Message, Any]]:
    """Return sender, message and body of each message with a reliable body."""
    pairs = (
        (Side.CLIENT, turn.request, turn.asked),
        (Side.BROKER, turn.response, turn.told),
    )
    return [(side, message, body) for side, message, body in pairs if message and body is not None]


def _severity(side: Side) -> Severity:
    """Return the severity: a warning in requests, because brokers refuse or ignore the fault."""
    return Severity.ERROR if side is Side.BROKER else Severity.WARNING


@rule(
    "A01",
    "A list must hold each item once",
    Severity.ERROR,
    source="mapKey in Kafka's message definitions: readers keep one item of a key; in a request "
    "most APIs refuse it (CreateTopicsRequest, ListOffsetsRequest.duplicatePartitions), a warning",
    asks="What tells the items of a list apart stands in it once: topics, partitions, brokers, "
    "members, settings.",
    example="Fetch answers partition 0 of a topic twice",
)
def each_once(turn: Turn, say: Say) -> None:
    """Report duplicate items of lists."""
    for side, message, body in _bodies(turn):
        say.judged()
        assert message.schema is not None
        found_twice = twice(message.schema, message.api_version or 0, body)
        if side is Side.BROKER and (other := _OTHERS_JUDGE.get(turn.exchange.api or "")):
            found_twice = [each for each in found_twice if not other.fullmatch(each[0])]
        for path, name in found_twice[:_MOST_TOLD]:
            found = f"{quoted(str(name))} stands in the list twice"
            severity = Severity.WARNING if _is_preview(turn) else _severity(side)
            say.broken(side, found, message=message, path=path, severity=severity)


def _is_preview(turn: Turn) -> bool:
    """Return whether an exchange is ShareGroupDescribe v0, from the Kafka 4.0 preview."""
    return turn.exchange.api == "ShareGroupDescribe" and turn.version == 0


@rule(
    "A02",
    "An answer must cover what was asked, and nothing else",
    Severity.ERROR,
    source="the handlers of KafkaApis.scala and ControllerApis.scala: each item of a request has "
    "its result, be it an error",
    asks="Each topic, partition, group, resource that a request names is in the answer, and no "
    "other; unless the answer as a whole is an error.",
    example="Produce to partitions 0 and 1 is answered for partition 0 alone",
    apis=tuple(COVERS),
)
def covers(turn: Turn, say: Say) -> None:
    """Compare the items named in a request and in its response."""
    asked, told = turn.asked, turn.told
    if asked is None or told is None:
        say.unjudged(turn.lacks())
        return
    if told.get("error_code") or (turn.exchange.api == "Fetch" and _may_leave_out(asked, told)):
        return
    cover = COVERS[turn.exchange.api or ""]
    wanted = names(asked, cover.asked)
    if wanted is None or (cover.empty_is_all and not wanted):
        return
    say.judged()
    given = names(told, cover.told, frozenset(name[0] for name in wanted)) or set()
    path = cover.told.partition("[")[0].partition(".")[0]
    path = path if path in told else ""
    if (invented := given - wanted) and turn.exchange.api != "Fetch":  # X07 reports those
        found = f"{len(invented)} items were not asked for, such as {_text(min(invented, key=str))}"
        say.broken(Side.BROKER, found, path=path)
    if not cover.is_part and (missing := wanted - given):
        found = f"{len(missing)} items are left out, such as {_text(min(missing, key=str))}"
        say.broken(Side.BROKER, found, path=path)


def _may_leave_out(asked: Any, told: Any) -> bool:
    """
    Return whether a Fetch response may omit partitions: incremental, or perhaps an error.

    Controllers send consumers an empty response in versions without a top-level error code.
    """
    if "error_code" not in told and not told.responses:
        return True
    return bool(asked.get("session_epoch", -1) > 0)


def _text(name: tuple[Any, ...]) -> str:
    return quoted(", ".join(map(str, name)))


@rule(
    "N01",
    "Numbers must be in the range of their field",
    Severity.ERROR,
    source="Kafka's message definitions: -1 stands for nothing, and only where that can be; what "
    "a client sends is refused or without effect, a warning",
    asks="Offsets, ids, epochs, sizes and times are -1 or more; partitions, throttle times, "
    "limits and offsets to fetch from 0 or more; ports fit into 16 bits.",
    example="throttle_time_ms -20",
)
def in_range(turn: Turn, say: Say) -> None:
    """Report numbers outside the range of their field."""
    for side, message, body in _bodies(turn):
        say.judged()
        assert message.schema is not None
        for path, number, least in too_low(message.schema, message.api_version or 0, body)[
            :_MOST_TOLD
        ]:
            wrong = f"below {least}" if number < least else "above 65535, or of a node that exists"
            name = path.rpartition(".")[2]
            found = f"{name} is {number}, {wrong}"
            say.broken(side, found, message=message, path=path, severity=_severity(side))
