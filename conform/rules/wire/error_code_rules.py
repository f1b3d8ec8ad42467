"""C, first part: error codes of responses, and results next to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import FieldPlace, Limits, Screen, response_judged
from conform.registry.screened_columns import Bools, ScreenedPartitions
from conform.registry.usual_values import without_errors
from dissector.protocol.error_codes import ERRORS, error_name
from dissector.protocol.facts import ERROR, NO_ID, Facts, collect, fact_role
from dissector.protocol.headers import FETCH
from dissector.protocol.spans import spans
from dissector.view.text.escape import quoted

_UNKNOWN_CODE_PREFIX = "ERROR_"
"""Prefix of the names of unknown codes."""

_EMPTY_VALUES: tuple[Any, ...] = (None, b"", [])

_EMPTY_RESULTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "Produce": (("responses", "partition_responses"), {"base_offset": -1}),
    "Fetch": (("responses", "partitions"), {"records": _EMPTY_VALUES}),
    "ListOffsets": (("topics", "partitions"), {"offset": -1, "timestamp": -1}),
    "OffsetForLeaderEpoch": (("topics", "partitions"), {"end_offset": -1}),
    "InitProducerId": ((), {"producer_id": -1, "producer_epoch": -1}),
    "JoinGroup": ((), {"generation_id": -1, "members": _EMPTY_VALUES}),
    "SyncGroup": ((), {"assignment": _EMPTY_VALUES}),
    "Metadata": (("topics",), {"partitions": _EMPTY_VALUES}),
    "ShareFetch": (
        ("responses", "partitions"),
        {"records": _EMPTY_VALUES, "acquired_records": _EMPTY_VALUES},
    ),
    "ConsumerGroupHeartbeat": ((), {"assignment": _EMPTY_VALUES}),
    "ShareGroupHeartbeat": ((), {"assignment": _EMPTY_VALUES}),
    "DescribeConfigs": (("results",), {"configs": _EMPTY_VALUES}),
    "CreateDelegationToken": ((), {"hmac": _EMPTY_VALUES}),
}
"""API -> names of the lists that lead to the structs with an error code, and their empty values."""


_MIN_CODE = min(ERRORS)
_MAX_CODE = next(code for code in range(_MIN_CODE, 1 << 15) if code + 1 not in ERRORS)
"""The first and the last of the known codes without a gap between them."""


def _known_codes(place: FieldPlace) -> Limits | None:
    """Return the limits of known error codes."""
    is_code = fact_role(place.declared, place.siblings) == ERROR
    return (_MIN_CODE, _MAX_CODE) if is_code else None


@rule(
    "C01",
    "Unknown error code",
    Severity.WARNING,
    source="Errors.java: forCode maps unknown codes to UNKNOWN_SERVER_ERROR",
    asks="Each error code of a response is one that Kafka defines.",
    example="error_code 999",
    screen=Screen(response_judged, limits=_known_codes),
)
def check_error_codes(observation: Observation, reporter: Reporter) -> None:
    """Report unknown error codes in a response."""
    message, facts = observation.response, Facts()
    if observation.response_body is None or message is None or message.schema is None:
        return
    reporter.count_judged()
    collect(message.schema, message.api_version or 0, observation.response_body, facts)
    for name in facts.errors:
        if name.startswith(_UNKNOWN_CODE_PREFIX):
            code = int(name.removeprefix(_UNKNOWN_CODE_PREFIX))
            reporter.report_violation(
                Side.BROKER, f"error code {code} is unknown", path=_path_of(observation, code)
            )


def _path_of(observation: Observation, code: int) -> str:
    """Return the path of the first response field with an error code."""
    message = observation.response
    if message is None or message.schema is None:
        return ""
    root = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
    return next(
        (s.path for s in root.leaves() if s.name.endswith("error_code") and s.value == code), ""
    )


_IN_PARTITIONS = frozenset(("base_offset", "high_watermark"))
"""Fields beside the error codes of partitions in Produce and Fetch, which are in columns."""


def _without_other_errors(place: FieldPlace) -> Limits | None:
    """Return limits without error codes, but for those of these partitions."""
    if any(each.name in _IN_PARTITIONS for each in place.siblings):
        return None
    return without_errors(place)


def _empty_next_to_errors(partitions: ScreenedPartitions) -> Bools:
    """Let Produce and Fetch pass whose partitions have no result next to an error."""
    response = partitions.response
    is_fetch = partitions.rows.is_of(FETCH)[response.row]
    is_empty = np.where(is_fetch, response.records <= 0, response.offset == -1)
    return response.all_of(len(partitions), (response.error == 0) | is_empty)


@rule(
    "C03",
    "Result next to an error",
    Severity.WARNING,
    source="ProduceResponse.java, ListOffsetsResponse.java, OffsetsForLeaderEpochResponse.java, "
    "InitProducerIdResponse.java: -1 next to an error; FetchResponse.java (partitionResponse): "
    "empty records",
    asks="Next to an error code, offsets, timestamps and producer ids are -1, and records, "
    "assignments and lists are empty.",
    example="Produce: error_code 6, base_offset 17",
    apis=tuple(_EMPTY_RESULTS),
    screen=Screen(response_judged, limits=_without_other_errors, partitions=_empty_next_to_errors),
)
def check_no_result_with_error(observation: Observation, reporter: Reporter) -> None:
    """Report results next to errors."""
    if observation.response_body is None:
        return
    reporter.count_judged()
    list_names, empty_values = _EMPTY_RESULTS[observation.exchange.api or ""]
    for path, struct in structs_at(observation.response_body, list_names):
        if not struct["error_code"]:
            continue
        for name, value in empty_values.items():
            allowed = value if isinstance(value, tuple) else (value,)
            if struct.get(name, allowed[0]) not in allowed:
                error = error_name(struct["error_code"])
                shown = struct[name] if isinstance(struct[name], int) else "not empty"
                found = f"{name} is {shown} next to '{error}'"
                reporter.report_violation(Side.BROKER, found, path=f"{path}.{name}".lstrip("."))


def structs_at(
    body: Mapping[str, Any], names: tuple[str, ...], path: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield path and value of each struct in the innermost of nested lists."""
    if not names:
        yield path, body
        return
    for index, each in enumerate(body[names[0]] or ()):
        yield from structs_at(each, names[1:], f"{path}.{names[0]}[{index}]".lstrip("."))


@rule(
    "C02",
    "Created topic without a topic id",
    Severity.WARNING,
    source="CreateTopicsResponse.json v7+; ReplicationControlManager.createTopics",
    asks="A CreateTopics response of version 7 or above contains the id of each created topic.",
    example="CreateTopics v7: error_code 0, topic_id of zeros",
    apis=("CreateTopics",),
)
def check_created_topic_ids(observation: Observation, reporter: Reporter) -> None:
    """Check the topic ids of a CreateTopics response."""
    if (
        (observation.version or 0) < 7
        or observation.request_body is None
        or observation.response_body is None
    ):
        return
    if observation.request_body.validate_only:
        return
    reporter.count_judged()
    for at, topic in enumerate(observation.response_body.topics or ()):
        if not topic.error_code and topic.topic_id == NO_ID:
            path = f"topics[{at}].topic_id"
            reporter.report_violation(
                Side.BROKER, f"{quoted(topic.name)} was created without an id", path=path
            )


@rule(
    "C04",
    "Cursor that does not advance",
    Severity.ERROR,
    source="DescribeTopicPartitionsResponse.json: NextCursor (KIP-966)",
    asks="The next cursor of DescribeTopicPartitions is greater than the requested one; otherwise "
    "clients repeat the same request forever.",
    example="a request with cursor ('orders', 5), and a response with next_cursor ('orders', 5)",
    apis=("DescribeTopicPartitions",),
)
def check_cursor(observation: Observation, reporter: Reporter) -> None:
    """Check that the next cursor is greater than the requested one."""
    if observation.request_body is None or observation.response_body is None:
        return
    reporter.count_judged()
    cursor, next_cursor = observation.request_body.cursor, observation.response_body.next_cursor
    if cursor is None or next_cursor is None:
        return
    current, following = ((c.topic_name, c.partition_index) for c in (cursor, next_cursor))
    if following <= current:
        found = f"{quoted(following[0])} {following[1]} is not greater than"
        found += f" {quoted(current[0])} {current[1]}"
        reporter.report_violation(Side.BROKER, found, path="next_cursor")
