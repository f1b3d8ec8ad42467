"""C: error codes of responses, and the fields beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conform.evidence.observation import Turn
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import NO_ID, Facts, collect
from dissector.protocol.spans import spans
from dissector.view.text.escape import quoted

_UNKNOWN = "ERROR_"
"""Prefix of `error_name` for unknown codes."""

_EMPTY: tuple[Any, ...] = (None, b"", [])

_NOTHING: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "Produce": (("responses", "partition_responses"), {"base_offset": -1}),
    "Fetch": (("responses", "partitions"), {"records": _EMPTY}),
    "ListOffsets": (("topics", "partitions"), {"offset": -1, "timestamp": -1}),
    "OffsetForLeaderEpoch": (("topics", "partitions"), {"end_offset": -1}),
    "InitProducerId": ((), {"producer_id": -1, "producer_epoch": -1}),
    "JoinGroup": ((), {"generation_id": -1, "members": _EMPTY}),
    "SyncGroup": ((), {"assignment": _EMPTY}),
    "Metadata": (("topics",), {"partitions": _EMPTY}),
    "ShareFetch": (("responses", "partitions"), {"records": _EMPTY, "acquired_records": _EMPTY}),
    "ConsumerGroupHeartbeat": ((), {"assignment": _EMPTY}),
    "ShareGroupHeartbeat": ((), {"assignment": _EMPTY}),
    "DescribeConfigs": (("results",), {"configs": _EMPTY}),
    "CreateDelegationToken": ((), {"hmac": _EMPTY}),
}
"""API -> path of lists to the structs with an error code, and the empty values of their fields."""


@rule(
    "C01",
    "Error codes are known",
    Severity.WARNING,
    source="Errors.java: forCode takes any other for UNKNOWN_SERVER_ERROR",
    asks="Each error code of an answer is one of Kafka's.",
    example="error_code 999",
)
def codes_are_known(turn: Turn, say: Say) -> None:
    """Report unknown error codes in a response."""
    message, facts = turn.response, Facts()
    if turn.told is None or message is None or message.schema is None:
        return
    say.judged()
    collect(message.schema, message.api_version or 0, turn.told, facts)
    for name in facts.errors:
        if name.startswith(_UNKNOWN):
            code = int(name.removeprefix(_UNKNOWN))
            say.broken(Side.BROKER, f"error code {code} is unknown", path=_path_of(turn, code))


def _path_of(turn: Turn, code: int) -> str:
    """Return the path of the first response field with an error code."""
    message = turn.response
    if message is None or message.schema is None:
        return ""
    root = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
    return next(
        (s.path for s in root.leaves() if s.name.endswith("error_code") and s.value == code), ""
    )


@rule(
    "C03",
    "Beside an error stands no result",
    Severity.WARNING,
    source="ProduceResponse.java, ListOffsetsResponse.java, OffsetsForLeaderEpochResponse.java, "
    "InitProducerIdResponse.java: -1 beside an error; FetchResponse.java (partitionResponse): "
    "empty records",
    asks="Where an answer has an error, its offsets, timestamps and producer ids are -1, and its "
    "records, assignments and lists are empty.",
    example="Produce: error_code 6, base_offset 17",
    apis=tuple(_NOTHING),
)
def no_result_beside_errors(turn: Turn, say: Say) -> None:
    """Report results beside errors."""
    if turn.told is None:
        return
    say.judged()
    way, nothing = _NOTHING[turn.exchange.api or ""]
    for path, struct in structs(turn.told, way):
        if not struct["error_code"]:
            continue
        for name, value in nothing.items():
            allowed = value if isinstance(value, tuple) else (value,)
            if struct.get(name, allowed[0]) not in allowed:
                error = error_name(struct["error_code"])
                there = struct[name] if isinstance(struct[name], int) else "not empty"
                what = f"{name} is {there} beside '{error}'"
                say.broken(Side.BROKER, what, path=f"{path}.{name}".lstrip("."))


def structs(
    body: Mapping[str, Any], way: tuple[str, ...], path: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield path and value of each struct reached through nested lists."""
    if not way:
        yield path, body
        return
    for at, each in enumerate(body[way[0]] or ()):
        yield from structs(each, way[1:], f"{path}.{way[0]}[{at}]".lstrip("."))


@rule(
    "C02",
    "A topic that was created has an id",
    Severity.WARNING,
    source="CreateTopicsResponse.json v7+; ReplicationControlManager.createTopics",
    asks="CreateTopics v7 and above tells the id of each topic that it made.",
    example="CreateTopics v7: error_code 0, topic_id of zeros",
    apis=("CreateTopics",),
)
def created_topics_have_ids(turn: Turn, say: Say) -> None:
    """Check the topic ids of a CreateTopics response."""
    if (turn.version or 0) < 7 or turn.asked is None or turn.told is None:
        return
    if turn.asked.validate_only:
        return
    say.judged()
    for at, topic in enumerate(turn.told.topics or ()):
        if not topic.error_code and topic.topic_id == NO_ID:
            path = f"topics[{at}].topic_id"
            say.broken(Side.BROKER, f"{quoted(topic.name)} was made and has no id", path=path)


@rule(
    "C04",
    "A cursor moves on",
    Severity.ERROR,
    source="DescribeTopicPartitionsResponse.json: NextCursor (KIP-966)",
    asks="The next cursor of DescribeTopicPartitions lies behind the one that was asked from, or "
    "clients ask forever.",
    example="cursor ('orders', 5) is asked, and next_cursor is ('orders', 5)",
    apis=("DescribeTopicPartitions",),
)
def cursor_moves_on(turn: Turn, say: Say) -> None:
    """Check that the next cursor is greater than the requested one."""
    if turn.asked is None or turn.told is None:
        return
    say.judged()
    asked, told = turn.asked.cursor, turn.told.next_cursor
    if asked is None or told is None:
        return
    before, after = ((c.topic_name, c.partition_index) for c in (asked, told))
    if after <= before:
        what = f"{quoted(told.topic_name)} {told.partition_index} does not lie behind"
        say.broken(
            Side.BROKER,
            f"{what} {quoted(asked.topic_name)} {asked.partition_index}",
            path="next_cursor",
        )
