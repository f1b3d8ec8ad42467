"""Programs that make a mistake, and the same ones mended, for clients of any language: data only.

A program has settings, named as Kafka's documentation does, and steps, which `client_steps.py` and
`AdvisedClient.java` describe and take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Step = tuple[str, dict[str, Any]]
Settings = dict[str, Any]
Fault = tuple[str, str]
Release = Literal["newest", "old", "oldest"]

CLIENTS = ("librdkafka", "kafka-python", "java")


@dataclass(frozen=True)
class Side:
    """
    What a program does.

    Attributes:
        steps: Its steps, and their arguments.
        producer: Settings of its producers, besides those of all.
        consumer: Settings of its consumers.
        common: Settings of both: security.
        faults: What happens to it behind the recorder: API, and fault of `kafkashark record`.
        releases: Which releases of the client's library run it, each in a process.
        impossible: By client, why it can't be run.
    """

    steps: tuple[Step, ...]
    producer: Settings = field(default_factory=dict)
    consumer: Settings = field(default_factory=dict)
    common: Settings = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    releases: tuple[Release, ...] = ("newest",)
    impossible: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """
    A mistake, and its mend.

    Attributes:
        bad: The program with the mistake.
        mended: The program without.
        topic: Settings of the topics of both.
        subject: What the finding is about; all three have the program's name.
        version: The broker's release, if not the newest.
    """

    bad: Side
    mended: Side
    topic: dict[str, str] = field(default_factory=dict)
    subject: Literal["client_id", "topic", "group"] = "client_id"
    version: str = "4.x"


def produce(count: int, **given: Any) -> Step:
    return "produce", {"count": count, **given}


def consume(seconds: float, **given: Any) -> Step:
    return "consume", {"seconds": seconds, **given}


def ask(times: int, **given: Any) -> Step:
    return "ask", {"times": times, **given}


_FEW = produce(20, each=10)
_NOT_IDEMPOTENT = {"enable.idempotence": False}
_SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
_PLAIN = {**_SASL, "sasl.mechanism": "PLAIN"}
# No member may expire that a busy machine stops for some seconds: that is a rebalance, too.
_PATIENT = {"session.timeout.ms": 30_000, "heartbeat.interval.ms": 500}
_PATIENT |= {"max.poll.interval.ms": 30_000}
_QUICK = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "max.poll.interval.ms": 6000}
_GIVES_UP = {"request.timeout.ms": 7000, "delivery.timeout.ms": 16_000}
_OF_0_9 = {"api.version": "0.9", "compression.type": "gzip"}
_NO_EPOCH_GROUPS = {"kafka-python": "kafka-python 3.0 has no groups of KIP-848"}

PLANS = {
    "producer-per-record": Plan(
        Side((produce(15, each=1, pause_ms=200, anew=True),)),
        Side((produce(15, each=1, pause_ms=200),)),
    ),
    "tiny-batches": Plan(
        Side((produce(400, each=1, pause_ms=5),), {"linger.ms": 0}),
        Side((produce(400, each=40, pause_ms=500),)),
    ),
    "no-compression": Plan(
        Side((produce(300, each=30, pause_ms=600, size=1000),), {"compression.type": "none"}),
        Side((produce(300, each=30, pause_ms=600, size=1000),)),
    ),
    "not-idempotent": Plan(
        Side((produce(120, each=60),), _NOT_IDEMPOTENT), Side((produce(120, each=60),))
    ),
    "acks-0": Plan(
        Side((produce(30, each=1, pause_ms=20),), {"acks": "0", **_NOT_IDEMPOTENT}),
        Side((produce(30, each=1, pause_ms=20),)),
    ),
    "too-large": Plan(
        Side((produce(2, each=1, size=8000),), {"compression.type": "none"}),
        Side((produce(2, each=1, size=1000),), {"compression.type": "none"}),
        topic={"max.message.bytes": "4000"},
    ),
    "hot-key": Plan(
        Side((produce(600, each=60, pause_ms=300, keys=50, hot=6),)),
        Side((produce(600, each=60, pause_ms=300, keys=50),)),
        subject="topic",
    ),
    "partition-skew": Plan(
        Side((produce(1000, each=100, pause_ms=300, skew=9),)),
        Side((produce(1000, each=100, pause_ms=300, keys=500),)),
        subject="topic",
    ),
    "throttling": Plan(
        Side((produce(40, each=10, size=2000),), {"compression.type": "none"}),
        Side((produce(40, each=10, size=2000),), {"compression.type": "zstd"}),
    ),
    "open-transaction": Plan(
        Side((("transact", {"times": 1, "is_ended": False}),)),
        Side((("transact", {"times": 1, "is_ended": True}),)),
    ),
    "commit-per-record": Plan(
        Side((produce(100), consume(8, commit=1, pause_ms=20))),
        Side((produce(100), consume(8, commit=50, pause_ms=20))),
    ),
    "commits-in-rebalances": Plan(
        Side((_FEW, ("expelled", {"rounds": 4, "is_expelled": True}))),
        Side((_FEW, ("expelled", {"rounds": 4, "is_expelled": False}))),
    ),
    "zombie-members": Plan(
        Side((("rivals", {"rounds": 3, "is_same": True}),)),
        Side((("rivals", {"rounds": 3, "is_same": False}),)),
    ),
    "rebalance-loop": Plan(
        Side((_FEW, ("rejoin", {"rounds": 5, "seconds": 12})), consumer=_PATIENT),
        Side((_FEW, ("rejoin", {"rounds": 1, "seconds": 12})), consumer=_PATIENT),
        subject="group",
    ),
    "stops-polling": Plan(
        Side((_FEW, consume(20, stall_s=11)), consumer=_QUICK),
        Side((_FEW, consume(20, stall_s=1)), consumer=_QUICK),
    ),
    "classic-group": Plan(
        Side((_FEW, consume(5)), consumer={"group.protocol": "classic"}),
        Side(
            (_FEW, consume(5)),
            consumer={"group.protocol": "consumer"},
            impossible=_NO_EPOCH_GROUPS,
        ),
        subject="group",
    ),
    "empty-fetches": Plan(
        Side((_FEW, consume(10)), consumer={"fetch.max.wait.ms": 10}),
        Side((_FEW, consume(10)), consumer={"fetch.max.wait.ms": 500}),
    ),
    "offsets-out-of-range": Plan(
        Side((_FEW, consume(4, offset=1_000_000))), Side((_FEW, consume(4, offset=0)))
    ),
    "stale-leader": Plan(
        Side((produce(10),), _GIVES_UP, faults=(("Produce", "NOT_LEADER_OR_FOLLOWER"),)),
        Side((produce(10),), _GIVES_UP, faults=(("Produce", "NOT_LEADER_OR_FOLLOWER,times:2"),)),
    ),
    "connection-per-request": Plan(
        Side((ask(25, pause_ms=250, anew=True),)), Side((ask(25, pause_ms=250),))
    ),
    "metadata-storm": Plan(Side((ask(50, pause_ms=120),)), Side((ask(2, pause_ms=5000),))),
    "many-topics": Plan(Side((ask(4, pause_ms=500, is_all=True),)), Side((_FEW, consume(3)))),
    "unknown-topic-loop": Plan(
        Side((produce(12, each=1, pause_ms=100, topic="never-created"),), {"max.block.ms": 1000}),
        Side((produce(12, each=1, pause_ms=100),), {"max.block.ms": 1000}),
    ),
    "denied-loop": Plan(
        Side(
            (produce(15, each=1, pause_ms=300, topic="denied"),), {"max.block.ms": 1000}, {}, _SASL
        ),
        Side((produce(15, each=1, pause_ms=300),), {"max.block.ms": 1000}, {}, _SASL),
    ),
    "reauthentication": Plan(Side((_FEW,), common=_PLAIN), Side((_FEW,), common=_SASL)),
    "hung-requests": Plan(
        Side((produce(1),), _GIVES_UP, faults=(("Produce", "delay:30000"),)),
        Side((produce(1),), _GIVES_UP, faults=(("Produce", "delay:1000"),)),
    ),
    "old-client": Plan(Side((_FEW,), releases=("old",)), Side((_FEW,))),
    "mixed-versions": Plan(
        Side((_FEW,), releases=("old", "newest")), Side((_FEW,), releases=("newest",))
    ),
    "removed-versions": Plan(
        Side((_FEW,), {**_NOT_IDEMPOTENT, **_OF_0_9}, releases=("oldest",)),
        Side((_FEW,)),
        version="3.9.x",
    ),
}
"""By the id of an advice."""

LIMITS = {
    "hung-requests.seconds": 5,
    "open-transaction.seconds": 5,
    "hot-key.count": 200,
    "partition-skew.count": 500,
    "tiny-batches.linger_ms": 100,
    "tiny-batches.seconds": 1,
    "old-client.librdkafka": 2.9,
    "old-client.kafka_python": 3,
}
"""Thresholds of both programs, where the default ones need minutes, or a quick machine."""


def sides() -> Iterator[tuple[str, str, Side]]:
    """Yield the two programs of each advice: its id, `bad` or `mended`, the program."""
    for advice, plan in PLANS.items():
        yield advice, "bad", plan.bad
        yield advice, "mended", plan.mended
