"""The rank of a rule: the consequence of its violation for clients."""

from __future__ import annotations

from enum import StrEnum


class Rank(StrEnum):
    """
    Consequence for the clients in use.

    `breaks clients`: some of them fail, wait, or lose or misread records. `differs from Kafka`:
    they continue, though not as with Apache Kafka.
    """

    BREAKS = "breaks clients"
    DIFFERS = "differs from Kafka"


_ERROR_CODE_RULES = frozenset(
    (
        "P04",
        "P05",
        "P06",
        "P12",
        "P13",
        "P17",
        "P20",
        "P25",
        "P36",
        "P40",
        "P42",
        "P44",
        "F12",
        "B21",
        "T09",
    )
)
"""
Rules of severity error whose violation is only another error code, or a missing rejection: a client
that sends nothing wrong never sees the difference.
"""


def rank_of(rule: str, severity: Severity) -> Rank:
    """Return the rank of a rule by its id and severity: only an error breaks clients."""
    is_mild = severity.value != "error" or rule in _ERROR_CODE_RULES
    return Rank.DIFFERS if is_mild else Rank.BREAKS


class Severity(StrEnum):
    """
    Severity of a violation.

    What Kafka rejects, or what corrupts a peer, is an error; what Kafka tolerates is a warning;
    advice is a note.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
