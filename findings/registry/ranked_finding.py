"""One thing that stands out in a capture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

MAX_PACKETS = 32
"""Number of packets that a finding names; of more the first ones."""


class Rank(StrEnum):
    """
    What a finding means.

    `breaks`: something failed, or clients of Kafka break. `costs`: it takes time or traffic, or
    puts records at risk. `differs`: it is not as Apache Kafka and its clients do it. `informs`:
    worth knowing, no fault by itself.
    """

    BREAKS = "breaks"
    COSTS = "costs"
    DIFFERS = "differs"
    INFORMS = "informs"


RANKS = tuple(Rank)
"""The ranks, the worst first."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """
    Whom and what a finding is about, the most frequent first; empty where that does not apply.

    Attributes:
        clients: Client ids; of clients without one their address.
        topics: Topics.
        groups: Groups, and transactional ids.
    """

    clients: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def joined(self, other: Subjects) -> Subjects:
        """Return these, then those of another one."""
        return Subjects(
            _both(self.clients, other.clients),
            _both(self.topics, other.topics),
            _both(self.groups, other.groups),
        )


@dataclass(frozen=True, slots=True)
class RankedFinding:
    """
    Something that stands out.

    Attributes:
        id: Its source and what it is, the same in each capture: `error:OffsetCommit:NOT_LEADER`.
        rank: What it means.
        title: What it is, in plain words.
        detail: More about it, in a sentence; may be empty.
        count: Number of exchanges, events or cases.
        subjects: Whom and what it is about.
        packets: Some packets that show it, from 1, in order.
        begin_ns: Time of the first one, in ns since the epoch; 0 if unknown.
        end_ns: Time of the last one.
        filter: Display filter for its exchanges; empty if it has none, as lost packets.
        more: Command that says more about it, without the captures.
        causes: What it shares with findings of the same cause, such as `rebalance billing`.
        joined: Findings of other sources with the same cause.
    """

    id: str
    rank: Rank
    title: str
    count: int
    detail: str = ""
    subjects: Subjects = Subjects()
    packets: tuple[int, ...] = ()
    begin_ns: int = 0
    end_ns: int = 0
    filter: str = ""
    more: str = ""
    causes: frozenset[str] = frozenset()
    joined: tuple[RankedFinding, ...] = ()

    @property
    def source(self) -> str:
        """The source that it comes from."""
        return self.id.partition(":")[0]


def first_packets(packets: Iterable[int]) -> tuple[int, ...]:
    """Return the first of some packets, in order, each once."""
    return tuple(sorted(set(packets))[:MAX_PACKETS])


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
