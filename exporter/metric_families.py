"""
The families of metrics: names, labels, meanings, and the bounds of histograms.

Names follow Prometheus' conventions: base units, `_total` of counters.
Source: https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

OTHER = "other"
"""The label of all series beyond the limit of a family."""

SECOND_NS = 1_000_000_000

LATENCY_BOUNDS_NS = tuple(
    each * 100_000
    for each in (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 50_000, 100_000, 300_000)
)
"""From half a millisecond to half a minute."""

SIZE_BOUNDS = tuple(64 << shift for shift in range(0, 20, 2))
"""From 64 bytes to 16 MiB."""


class Family(NamedTuple):
    """
    A family of metrics.

    Attributes:
        name: Its name.
        kind: `counter`, `gauge` or `histogram`.
        meaning: What it counts, in a sentence.
        labels: Names of its labels.
        bounds: Upper bounds of a histogram's buckets, in units in which values are added.
        unit: Number of these units in one of the metric's.
    """

    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    unit: int = 1


class Dimension(NamedTuple):
    """
    What exchanges are grouped by.

    Attributes:
        keys: Keys of `dissector.summary.key_columns`.
        labels: A label for each column of the keys.
    """

    keys: tuple[str, ...]
    labels: tuple[str, ...]


DIMENSIONS: Mapping[str, Dimension] = {
    "api": Dimension(("api",), ("api",)),
    "topic": Dimension(("topic",), ("topic",)),
    "client": Dimension(("software",), ("software_name", "software_version")),
    "broker": Dimension(("broker",), ("broker",)),
}
"""Each with the same measures."""

ERROR_DIMENSIONS: Mapping[str, Dimension] = {
    "api": Dimension(("api", "error"), ("api", "error")),
    "topic": Dimension(("topic", "error"), ("topic", "error")),
}
"""Of errors by name."""


class ExchangeFamilies(NamedTuple):
    """The measures of a dimension."""

    exchanges: Family
    failed: Family
    unanswered: Family
    latency: Family
    request_bytes: Family
    response_bytes: Family


def exchange_families(name: str) -> ExchangeFamilies:
    """Return the measures of a dimension."""
    labels = DIMENSIONS[name].labels
    prefix = f"kafkashark_{name}"
    return ExchangeFamilies(
        Family(f"{prefix}_exchanges_total", COUNTER, f"Exchanges by {name}.", labels),
        Family(
            f"{prefix}_failed_exchanges_total", COUNTER, f"Those with an error, by {name}.", labels
        ),
        Family(
            f"{prefix}_unanswered_exchanges_total",
            COUNTER,
            f"Those without the expected response, by {name}.",
            labels,
        ),
        Family(
            f"{prefix}_latency_seconds",
            HISTOGRAM,
            f"Time from request to response, by {name}.",
            labels,
            LATENCY_BOUNDS_NS,
            SECOND_NS,
        ),
        *(
            Family(
                f"{prefix}_{side}_bytes",
                HISTOGRAM,
                f"Sizes of {side}s, by {name}.",
                labels,
                SIZE_BOUNDS,
            )
            for side in ("request", "response")
        ),
    )


def error_family(name: str) -> Family:
    """Return the errors of a dimension."""
    return Family(
        f"kafkashark_{name}_errors_total",
        COUNTER,
        f"Exchanges with an error of this name, by {name}.",
        ERROR_DIMENSIONS[name].labels,
    )


REBALANCES = Family(
    "kafkashark_group_rebalances_total",
    COUNTER,
    "Increases of a group's generation or epoch.",
    ("group",),
)
LAG = Family(
    "kafkashark_group_lag_records",
    GAUGE,
    "Records from the committed offsets of a group to the ends of partitions, as last seen.",
    ("group", "topic"),
)
LAST_EXCHANGE = Family(
    "kafkashark_last_exchange_timestamp_seconds",
    GAUGE,
    "Time of the last message of an exchange, in seconds since the epoch.",
)
PASSED_OVER = Family(
    "kafkashark_capture_passed_over_packets_total",
    COUNTER,
    "Packets of the capture that hold no TCP that can be read, by reason.",
    ("reason",),
)

HEALTH: Mapping[str, Family] = {
    key: Family(f"kafkashark_capture_{key}_total", COUNTER, meaning)
    for key, meaning in {
        "packets": "Packets of the capture.",
        "connections": "TCP connections.",
        "kafka_connections": "TCP connections with Kafka.",
        "tls_connections": "TCP connections with TLS.",
        "decrypted_connections": "TLS connections with known keys.",
        "gaps": "Holes in TCP streams: packets that the capture lacks.",
        "gap_bytes": "Bytes in these holes.",
        "cut_bytes": "Bytes that the snapshot length cut.",
        "retransmitted_bytes": "Bytes that were sent again.",
        "skipped_bytes": "Bytes between messages that could not be read.",
        "problems": "Problems of messages, and of files.",
    }.items()
}
"""How complete the capture is: keys of `statistics.health`, and their families."""


def all_families() -> Iterator[Family]:
    """Yield all families."""
    for name in DIMENSIONS:
        yield from exchange_families(name)
    yield from map(error_family, ERROR_DIMENSIONS)
    yield from (REBALANCES, LAG, LAST_EXCHANGE)
    yield from HEALTH.values()
    yield PASSED_OVER
