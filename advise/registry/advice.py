"""An advice: what it is about, why that costs, and which settings of clients change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

CLIENTS = ("Java", "librdkafka", "franz-go", "sarama", "kafka-python", "kafkajs")
"""The clients whose settings each advice names."""


class Rank(StrEnum):
    """
    What a finding means.

    `costly`: it takes time, traffic or processors that a setting would save. `risky`: records may
    be lost, repeated or late. `informs`: worth knowing, no fault by itself.
    """

    COSTLY = "costly"
    RISKY = "risky"
    INFORMS = "informs"


RANKS = tuple(Rank)
"""The ranks, the worst first."""


@dataclass(frozen=True, slots=True)
class Limit:
    """
    A threshold.

    Attributes:
        default: Its value without a setting.
        meaning: What is compared with it, with its unit.
    """

    default: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Advice:
    """
    One advice.

    Attributes:
        id: Its name in options: `tiny-batches`.
        rank: What its findings mean.
        title: What was found, as a headline.
        what: What clients do, in full sentences.
        cost: Why that costs, or what may be lost.
        settings: Client library -> the setting to change.
        source: Where Kafka or the clients document it.
        limits: The thresholds by name. `count` and `seconds` are the least evidence: with less, a
            subject is not judged.
    """

    id: str
    rank: Rank
    title: str
    what: str
    cost: str
    settings: Mapping[str, str]
    source: str
    limits: Mapping[str, Limit]


ADVICES: dict[str, Advice] = {}
"""Every advice by its id; filled by `advise.catalogue`."""


def advice(
    id: str,
    rank: Rank,
    title: str,
    *,
    what: str,
    cost: str,
    settings: tuple[str, str, str, str, str, str],
    source: str,
    **limits: tuple[float, str],
) -> Advice:
    """
    Register an advice.

    Args:
        id: Its id.
        rank: The rank of its findings.
        title: The headline.
        what: What clients do.
        cost: Why that costs.
        settings: The settings of each of `CLIENTS`, in their order.
        source: Where it is documented.
        limits: Default and meaning of each threshold.
    """
    assert id not in ADVICES, f"advice {id} is registered twice"
    known = {name: Limit(*each) for name, each in limits.items()}
    by_client = dict(zip(CLIENTS, settings, strict=True))
    ADVICES[id] = Advice(id, rank, title, what, cost, by_client, source, known)
    return ADVICES[id]
