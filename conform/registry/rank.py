"""The rank and the severity of a rule."""

from __future__ import annotations

from enum import StrEnum


class Rank(StrEnum):
    """
    Consequence of a violation for existing clients.

    `breaks clients`: some clients fail, hang, or lose or misread records. `differs from Kafka`:
    clients continue, but the behaviour differs from Apache Kafka.
    """

    BREAKS = "breaks clients"
    DIFFERS = "differs from Kafka"


ERROR_CODE_RULES = frozenset(
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
Rules of severity error about a different error code or a missing rejection, which a correct client
never meets.
"""


def rank_of(rule: str, severity: Severity) -> Rank:
    """Return the rank of a rule by its id and severity: only an error breaks clients."""
    is_mild = severity.value != "error" or rule in ERROR_CODE_RULES
    return Rank.DIFFERS if is_mild else Rank.BREAKS


class Severity(StrEnum):
    """
    Severity of a violation.

    A request that Kafka rejects, or a value that corrupts a peer, is an error; what Kafka tolerates
    is a warning; advice is a note.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
