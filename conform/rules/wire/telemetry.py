"""O: client telemetry pushed to brokers (KIP-714)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from conform.evidence.bounded_memory import Newest
from conform.evidence.observation import Turn
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.facts import NO_ID

_NONE = 0


@rule(
    "O01",
    "A client must keep the instance id that it was given",
    Severity.ERROR,
    source="KIP-714; ClientMetricsManager.java (processGetTelemetrySubscriptionRequest)",
    asks="GetTelemetrySubscriptions with the zero id is answered with an id that is not zero, any "
    "other with the same.",
    example="the request has an id, the answer another",
    apis=("GetTelemetrySubscriptions",),
)
def keeps_its_id(turn: Turn, say: Say) -> None:
    """Compare the instance ids of request and response."""
    asked, told = turn.asked, turn.told
    if asked is None or told is None:
        say.unjudged(turn.lacks())
        return
    if told.error_code:
        return
    say.judged()
    given = asked.client_instance_id
    if given != NO_ID and told.client_instance_id != given:
        found = f"id {given} is answered with {told.client_instance_id}"
        say.broken(Side.BROKER, found, path="client_instance_id")


class _Subscriptions(Newest[tuple[str, UUID], Any]):
    """Telemetry subscriptions by broker and client instance id."""


class _Instance:
    """The client instance id assigned on a connection."""

    def __init__(self) -> None:
        self.id: UUID | None = None


@rule(
    "O02",
    "A push must follow its subscription",
    Severity.ERROR,
    source="KIP-714; ClientMetricsManager.java (validatePushRequest): UNKNOWN_SUBSCRIPTION_ID, "
    "UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, THROTTLING_QUOTA_EXCEEDED",
    asks="PushTelemetry has the instance id and the subscription id that the connection was told, "
    "a compression that the broker accepts, and no more bytes than it takes; the broker refuses "
    "the rest.",
    example="subscription_id 7, where 9 was told",
    apis=("GetTelemetrySubscriptions", "PushTelemetry"),
)
def follows_its_subscription(turn: Turn, say: Say) -> None:
    """Record subscriptions and compare pushes with them."""
    asked, told = turn.asked, turn.told
    known, here = turn.world.state(_Subscriptions), turn.talk.state(_Instance)
    broker = turn.talk.broker.address
    if asked is None or told is None or not turn.whole:
        say.unjudged(turn.lacks() or turn.talk.partial)
        known.clear()
        return
    if turn.exchange.api == "GetTelemetrySubscriptions":
        if not told.error_code:
            known[broker, told.client_instance_id] = told
            here.id = told.client_instance_id
        return
    subscription = known.get((broker, here.id or asked.client_instance_id))
    if subscription is None:
        say.unjudged("the subscription is not in the capture")
        return
    say.judged()
    path, found = _wrong(asked, subscription)
    if not found:
        return
    say.broken(Side.CLIENT, found, path=path)
    if not told.error_code:
        say.broken(Side.BROKER, f"answered with error 0: {found}", path="error_code")


def _wrong(asked: Any, subscription: Any) -> tuple[str, str]:
    """Return the invalid field of a push and a description; both empty if it is valid."""
    if asked.client_instance_id != subscription.client_instance_id:
        return "client_instance_id", "another instance id than was told"
    if asked.subscription_id != subscription.subscription_id:
        return (
            "subscription_id",
            f"subscription {asked.subscription_id}, {subscription.subscription_id} was told",
        )
    accepted = subscription.accepted_compression_types or ()
    if asked.compression_type != _NONE and asked.compression_type not in accepted:
        return "compression_type", f"compression {asked.compression_type} is not accepted"
    if len(asked.metrics or b"") > subscription.telemetry_max_bytes:
        most = subscription.telemetry_max_bytes
        return "metrics", f"{len(asked.metrics)} bytes, at most {most} are taken"
    return "", ""
