"""Limits of fields of Produce and Fetch messages that several screens share, and their tests."""

from __future__ import annotations

import numpy as np

from conform.registry.rule_screen import ANY_LIMITS, FieldPlace, Limits, PartitionCount
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions, ScreenedRows
from dissector.protocol.headers import FETCH

_LOWEST, _HIGHEST = ANY_LIMITS
_NO_ERROR = {"error_code": (0, 0)}
_USUAL = {
    **_NO_ERROR,
    "base_offset": (0, _HIGHEST),
    "high_watermark": (0, _HIGHEST),
    "aborted_transactions": (_LOWEST, 0),
    "preferred_read_replica": (-1, -1),
}
_NOT_THROTTLED = {"throttle_time_ms": (0, 0), "max_wait_ms": (0, _HIGHEST)}


def without_errors(place: FieldPlace) -> Limits | None:
    """Return limits without error codes."""
    return _limits(place, _NO_ERROR)


def usual_results(place: FieldPlace) -> Limits | None:
    """Return limits of results without errors and without aborted transactions."""
    return _limits(place, _USUAL)


def not_throttled(place: FieldPlace) -> Limits | None:
    """Return limits without a throttle time."""
    return _limits(place, _NOT_THROTTLED)


def _limits(place: FieldPlace, by_name: dict[str, Limits]) -> Limits | None:
    return None if place.is_item else by_name.get(place.declared.name)


def is_answered_fetch(rows: ScreenedRows) -> Bools:
    """Let Fetch exchanges pass that have both messages."""
    return rows.is_of(FETCH) & rows.has_response


def has_plain_batches(rows: ScreenedRows) -> Bools:
    """Let the same pass if all their batches are plain."""
    return is_answered_fetch(rows) & rows.is_plain


def answers_whole_request(partitions: ScreenedPartitions) -> Bools:
    """
    Let Fetch exchanges pass whose messages have the same partitions.

    Those of a response in a session are compared with all requested in it.
    """
    is_known = partitions.is_same | partitions.sessions.is_known
    return is_known & is_answered_fetch(partitions.rows)


def partition_counts(first_version: int = 0) -> PartitionCount:
    """Return a function that counts the partitions of responses, from a version on."""

    def count(partitions: ScreenedPartitions) -> Ints:
        is_counted = partitions.rows.table.api_version >= first_version
        return np.where(is_counted, partitions.response.count(len(partitions)), 0)

    return count


def field_counts(lowest_size: int, first_version: int = 0) -> PartitionCount:
    """Return the same for partitions of responses with records of some size; -1 means null."""

    def count(partitions: ScreenedPartitions) -> Ints:
        response = partitions.response
        counts = response.count(len(partitions), response.records >= lowest_size)
        return np.where(partitions.rows.table.api_version >= first_version, counts, 0)

    return count
