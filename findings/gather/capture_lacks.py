"""Completeness of a capture: connections without begin, with gaps, truncated, or encrypted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dissector.engine.correlation.correlator import ConnectionState
from dissector.engine.reading.reader import Reading
from dissector.engine.reading.tls_report import unreadable_tls, without_kafka


@dataclass(frozen=True, slots=True)
class Lack:
    """
    A kind of missing traffic.

    Attributes:
        what: Name of the kind.
        count: Number of cases; 0 if nothing is missing.
        meaning: Consequence for the report.
    """

    what: str
    count: int
    meaning: str


def lacks(reading: Reading, kafka: Mapping[int, ConnectionState], problems: int) -> list[Lack]:
    """
    Return all kinds of missing traffic, with a count of 0 for complete ones.

    Args:
        reading: The complete pass.
        kafka: Result of `kafka_states`.
        problems: Number of problems in messages and files.
    """
    connections = reading.streams.connections
    gaps, gap_bytes, cut_bytes = connections.sums("gaps", "gap_bytes", "cut_bytes")
    encrypted = len(reading.decryption) - reading.decryption.decrypted_count
    skipped = reading.correlator.skipped_bytes()
    numbers = np.array(list(kafka), np.int64)
    is_one_sided = connections.missing_sides(numbers) >= 0
    begun = int((~connections.columns(numbers[~is_one_sided]).both_syns).sum())
    return [
        Lack("gaps in streams", gaps, "packets are lost"),
        Lack("bytes lost", gap_bytes, "exchanges in them are missing"),
        Lack("bytes cut", cut_bytes, "packets are truncated (snaplen)"),
        Lack("connections without their begin", begun, "they began before the capture"),
        Lack(
            "connections with one direction",
            int(is_one_sided.sum()),
            "the packets of the other side are not in the capture",
        ),
        Lack("TLS connections not decrypted", encrypted, "their traffic is not in this report"),
        Lack("bytes skipped", skipped, "they are not Kafka"),
        Lack("problems", problems, "bytes or files that can't be read"),
        *(
            Lack(f"packets passed over: {reason}", count, "they are not in this report")
            for reason, count in reading.source.passed_over.items()
        ),
    ]


def kafka_states(reading: Reading) -> dict[int, ConnectionState]:
    """Return the states of connections with Kafka, by number."""
    found = {}
    for number in range(len(reading.streams.connections)):
        state = reading.correlator.state_of(number)
        if state is not None and state.speaks == "kafka":
            found[number] = state
    return found


def why_empty(reading: Reading) -> str:
    """Return the reason why a capture has no exchanges; empty if it has any."""
    return unreadable_tls(reading) or without_kafka(reading)


def tls_reasons(reading: Reading) -> dict[str, int]:
    """Return the reasons for undecrypted TLS connections, most frequent first."""
    reasons = Counter(each.reason for each in reading.decryption.summaries())
    return {reason.value: n for reason, n in reasons.most_common() if reason is not None}
