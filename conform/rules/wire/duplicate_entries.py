"""A and N: lists and numbers in all messages, and missing or additional items of responses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from conform.evidence.duplicate_items import distinct_key_fields, find_duplicates
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.evidence.requested_items import EXPECTED_COVERAGE, item_keys
from conform.evidence.value_ranges import find_out_of_range, range_limits
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    ANY_LIMITS,
    FieldPlace,
    Limits,
    Screen,
    messages_judged,
    none_judged,
)
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions
from conform.registry.usual_values import is_answered_fetch
from dissector.protocol.messages import Message
from dissector.view.text.escape import quoted

_NOT_JUDGED = {
    (Side.BROKER, "Metadata"): re.compile(r"topics\[\d+\]"),
    (Side.BROKER, "ApiVersions"): re.compile(r"api_keys\[\d+\]"),
    (Side.CLIENT, "Metadata"): re.compile(r"topics\[\d+\]"),
}
"""
Lists with duplicates that other rules report (M01, V02), or that are usual in requests.

Java consumers that ask for offsets of assigned topics, as the restore consumer of Streams does,
name them twice in Metadata; brokers make a set of them.

Source: ConsumerMetadata.newMetadataRequestBuilder (metadataTopics, then transientTopics);
KafkaApis.handleTopicMetadataRequest (toSet).
"""

_MAX_FINDINGS = 3
"""Limit of the findings of one rule in one message."""


def _bodies(observation: Observation) -> list[tuple[Side, Message, Any]]:
    """Return sender, message and body of each message with a reliable body."""
    pairs = (
        (Side.CLIENT, observation.request, observation.request_body),
        (Side.BROKER, observation.response, observation.response_body),
    )
    return [(side, message, body) for side, message, body in pairs if message and body is not None]


def _severity(side: Side) -> Severity:
    """Return the severity: a warning in requests, because brokers reject or ignore the fault."""
    return Severity.ERROR if side is Side.BROKER else Severity.WARNING


@rule(
    "A01",
    "Duplicate item in a list",
    Severity.ERROR,
    source="mapKey in Kafka's message definitions: readers keep one item per key; in a request "
    "most APIs reject duplicates (CreateTopicsRequest, ListOffsetsRequest.duplicatePartitions), a "
    "warning",
    asks="Each item of a list (topic, partition, broker, member, setting) occurs once, identified "
    "by its key fields.",
    example="a Fetch response that contains partition 0 of a topic twice",
    screen=Screen(messages_judged, keys=distinct_key_fields),
)
def check_no_duplicates(observation: Observation, reporter: Reporter) -> None:
    """Report duplicate items in lists."""
    for side, message, body in _bodies(observation):
        reporter.count_judged()
        assert message.schema is not None
        duplicates = find_duplicates(message.schema, message.api_version or 0, body)
        excluded = _NOT_JUDGED.get((side, observation.exchange.api or ""))
        if excluded:
            duplicates = [each for each in duplicates if not excluded.fullmatch(each[0])]
        for path, key in duplicates[:_MAX_FINDINGS]:
            found = f"{quoted(str(key))} occurs twice in the list"
            severity = Severity.WARNING if _is_preview(observation) else _severity(side)
            reporter.report_violation(side, found, message=message, path=path, severity=severity)


def _is_preview(observation: Observation) -> bool:
    """Return whether an exchange is ShareGroupDescribe v0, from the Kafka 4.0 preview."""
    return observation.exchange.api == "ShareGroupDescribe" and observation.version == 0


def _without_error(place: FieldPlace) -> Limits | None:
    """Return limits of responses that say something; see `_may_omit_items`."""
    siblings = {each.name for each in place.siblings}
    name = place.declared.name
    if name == "error_code" and "responses" in siblings:
        return 0, 0
    if name == "responses" and "error_code" not in siblings:
        return 1, ANY_LIMITS[1]
    return None


def _answers_all_or_changes(partitions: ScreenedPartitions) -> Bools:
    """Let responses pass with the partitions of the request, or what changed in a session."""
    is_continued = partitions.sessions.epoch > 0
    return partitions.is_same | (is_continued & is_answered_fetch(partitions.rows))


def _full_judged(partitions: ScreenedPartitions) -> Ints:
    """Count what lists all of its partitions."""
    return (partitions.sessions.epoch <= 0).astype(np.int64)


@rule(
    "A02",
    "Response with missing or unrequested items",
    Severity.ERROR,
    source="the handlers of KafkaApis.scala and ControllerApis.scala: each item of a request has "
    "a result, possibly an error",
    asks="The response contains each topic, partition, group or resource of the request, and no "
    "other, unless the response as a whole is an error.",
    example="Produce to partitions 0 and 1, and a response with partition 0 alone",
    apis=tuple(EXPECTED_COVERAGE),
    screen=Screen(
        none_judged, limits=_without_error, partitions=_answers_all_or_changes, count=_full_judged
    ),
)
def check_requested_items(observation: Observation, reporter: Reporter) -> None:
    """Compare the items of a request and its response."""
    response = observation.response_body
    # A request without a response needs not be decoded.
    request = None if response is None else observation.request_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if response.get("error_code") or (
        observation.exchange.api == "Fetch" and _may_omit_items(request, response)
    ):
        return
    coverage = EXPECTED_COVERAGE[observation.exchange.api or ""]
    requested = item_keys(request, coverage.request_items)
    if requested is None or (coverage.empty_means_all and not requested):
        return
    reporter.count_judged()
    preferred = frozenset(key[0] for key in requested)
    returned = item_keys(response, coverage.response_items, preferred) or set()
    path = coverage.response_items.partition("[")[0].partition(".")[0]
    path = path if path in response else ""
    # X07 reports unrequested partitions of Fetch responses.
    if (additional := returned - requested) and observation.exchange.api != "Fetch":
        example = _key_text(min(additional, key=str))
        found = f"{len(additional)} items were not requested, such as {example}"
        reporter.report_violation(Side.BROKER, found, path=path)
    if not coverage.may_be_partial and (missing := requested - returned):
        example = _key_text(min(missing, key=str))
        found = f"{len(missing)} requested items are missing, such as {example}"
        reporter.report_violation(Side.BROKER, found, path=path)


def _may_omit_items(request: Any, response: Any) -> bool:
    """
    Return whether a Fetch response may omit partitions.

    It may if it is incremental. In versions without a top-level error code, an empty response may
    be an error: controllers send it to consumers.
    """
    if "error_code" not in response and not response.responses:
        return True
    return bool(request.get("session_epoch", -1) > 0)


def _key_text(key: tuple[Any, ...]) -> str:
    return quoted(", ".join(map(str, key)))


@rule(
    "N01",
    "Number outside the range of its field",
    Severity.ERROR,
    source="Kafka's message definitions: -1 means none, and is valid only in some fields; brokers "
    "reject or ignore such values in requests, a warning",
    asks="Offsets, ids, epochs, sizes and times are -1 or greater; partitions, throttle times, "
    "limits and fetch offsets are 0 or greater; ports fit into 16 bits.",
    example="throttle_time_ms -20",
    screen=Screen(messages_judged, limits=range_limits),
)
def check_value_ranges(observation: Observation, reporter: Reporter) -> None:
    """Report numbers outside the range of their field."""
    for side, message, body in _bodies(observation):
        reporter.count_judged()
        assert message.schema is not None
        for path, number, minimum in find_out_of_range(
            message.schema, message.api_version or 0, body
        )[:_MAX_FINDINGS]:
            deviation = (
                f"below {minimum}"
                if number < minimum
                else "above 65535, or -1 for an existing node"
            )
            name = path.rpartition(".")[2]
            found = f"{name} is {number}, {deviation}"
            reporter.report_violation(
                side, found, message=message, path=path, severity=_severity(side)
            )
