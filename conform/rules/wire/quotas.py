"""Q: quotas, and API versions that brokers no longer accept."""

from __future__ import annotations

import numpy as np

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Rest, Screen, none_judged, request_judged
from conform.registry.screened_columns import Bools, ScreenedRows
from conform.registry.usual_values import not_throttled

MARGIN_NS = 10_000_000
"""Tolerance: clients count in milliseconds, and the capture may be from the broker's side."""

_FIRST_THROTTLED_VERSION = {
    0: 6,
    1: 8,
    2: 3,
    3: 6,
    8: 4,
    9: 4,
    10: 2,
    11: 3,
    12: 2,
    13: 2,
    14: 2,
    15: 2,
    16: 2,
    18: 2,
    19: 3,
    20: 2,
    21: 1,
    22: 1,
    24: 1,
    25: 1,
    26: 1,
    28: 1,
    29: 1,
    30: 1,
    31: 1,
    32: 2,
    33: 1,
    34: 1,
    35: 1,
    37: 1,
    38: 1,
    39: 1,
    40: 1,
    41: 1,
    42: 1,
}
"""
API key -> first version with throttling by the client; APIs from 43 on have it in all versions.

Source: shouldClientThrottle of each response class of Kafka's clients (KIP-219).
"""
_FIRST_KEY_ALWAYS_THROTTLED = 43

_FIRST_ACCEPTED_BY_4_0 = {
    0: 3,
    1: 4,
    2: 1,
    8: 2,
    9: 1,
    11: 2,
    19: 2,
    20: 1,
    23: 2,
    27: 1,
    29: 1,
    30: 1,
    31: 1,
    32: 1,
    34: 1,
    35: 1,
    38: 1,
    39: 1,
    40: 1,
    41: 1,
}
"""API key -> lowest version that brokers of Kafka 4.0 accept; 0 for all others."""

_REMOVED_IN_4_0 = frozenset({4, 5, 6, 7})
"""LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown: used only with ZooKeeper."""


class _Throttle:
    """End of a connection's throttle time, and time of the response that announced it."""

    def __init__(self) -> None:
        self.response_ns = 0
        self.until_ns = 0


@rule(
    "Q01",
    "Request sent within the throttle time",
    Severity.WARNING,
    source="shouldClientThrottle in AbstractResponse.java, NetworkClient.java (KIP-219)",
    asks="After a response with throttle_time_ms > 0, the client sends no request on the "
    "connection for that time; the broker would not read it.",
    example="throttle_time_ms 500, and a request 20 ms later",
    screen=Screen(none_judged, limits=not_throttled, rest=Rest(_Throttle)),
)
def check_throttle_is_respected(observation: Observation, reporter: Reporter) -> None:
    """Report requests sent within the throttle time."""
    throttle = observation.connection.state(_Throttle)
    exchange = observation.exchange
    sent_ns = exchange.request_time_ns
    if throttle.until_ns and sent_ns is not None and sent_ns > throttle.response_ns:
        reporter.count_judged()
        early_ns = throttle.until_ns - sent_ns
        if early_ns > MARGIN_NS:
            found = f"a request {early_ns // 1_000_000} ms before the end of the throttle time"
            reporter.report_violation(Side.CLIENT, found)
    if reporter.is_screened:
        return  # there is no throttle time
    key, version = observation.api_key, observation.version
    throttle_ms = observation.throttle_ms
    if key is None or version is None:
        return
    first_version = _FIRST_THROTTLED_VERSION.get(
        key, 0 if key >= _FIRST_KEY_ALWAYS_THROTTLED else version + 1
    )
    if throttle_ms > 0 and version >= first_version:
        throttle.response_ns = exchange.response_time_ns or 0
        throttle.until_ns = throttle.response_ns + throttle_ms * 1_000_000
        observation.connection.set_rest(_Throttle, False)


def _accepted_by_4_0(rows: ScreenedRows) -> Bools:
    """Let requests pass that brokers of Kafka 4.0 accept."""
    keys, versions = rows.table.api_key, rows.table.api_version
    accepted: Bools = ~np.isin(keys, list(_REMOVED_IN_4_0))
    for key, first in _FIRST_ACCEPTED_BY_4_0.items():
        accepted &= (keys != key) | (versions >= first)
    return accepted


@rule(
    "Q02",
    "Version that Kafka 4.0 no longer accepts",
    Severity.NOTE,
    source="KIP-896: removed in Kafka 4.0; broker_api_versions of 4.0",
    asks="Brokers of Kafka 4.0 accept the version of the request.",
    example="Fetch v2",
    screen=Screen(request_judged, rows=_accepted_by_4_0),
)
def check_not_deprecated(observation: Observation, reporter: Reporter) -> None:
    """Report APIs and versions that brokers of Kafka 4.0 no longer accept."""
    key, version = observation.api_key, observation.version
    if key is None or version is None or observation.exchange.request_packet is None:
        return
    reporter.count_judged()
    if key in _REMOVED_IN_4_0:
        reporter.report_violation(Side.CLIENT, "brokers of Kafka 4.0 do not support this API")
        return
    first_accepted = _FIRST_ACCEPTED_BY_4_0.get(key, 0)
    if version < first_accepted:
        found = (
            f"version {version}, but brokers of Kafka 4.0 accept only {first_accepted} and above"
        )
        reporter.report_violation(Side.CLIENT, found)
