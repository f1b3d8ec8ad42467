"""O: client telemetry (KIP-714)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.facts import NO_ID

_NO_COMPRESSION = 0


@rule(
    "O01",
    "Client instance id replaced by the broker",
    Severity.ERROR,
    source="KIP-714; ClientMetricsManager.java (processGetTelemetrySubscriptionRequest)",
    asks="The response to GetTelemetrySubscriptions has the id of the request; if that is the zero "
    "id, the response has a new one.",
    example="a request with an id, and a response with another one",
    apis=("GetTelemetrySubscriptions",),
)
def check_client_instance_id(observation: Observation, reporter: Reporter) -> None:
    """Compare the instance ids of request and response."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if response.error_code:
        return
    reporter.count_judged()
    requested_id = request.client_instance_id
    if requested_id != NO_ID and response.client_instance_id != requested_id:
        found = f"the request has id {requested_id}, the response {response.client_instance_id}"
        reporter.report_violation(Side.BROKER, found, path="client_instance_id")


class _Subscriptions(BoundedDict[tuple[str, UUID], Any]):
    """Telemetry subscriptions by broker and client instance id."""


class _ClientInstance:
    """The client instance id assigned on a connection."""

    def __init__(self) -> None:
        self.id: UUID | None = None


@rule(
    "O02",
    "Telemetry push that contradicts its subscription",
    Severity.ERROR,
    source="KIP-714; ClientMetricsManager.java (validatePushRequest): UNKNOWN_SUBSCRIPTION_ID, "
    "UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, THROTTLING_QUOTA_EXCEEDED",
    asks="PushTelemetry has the instance id and the subscription id from the broker's last "
    "response, a compression type that the broker accepts, and no more bytes than its limit; the "
    "broker rejects anything else.",
    example="subscription_id 7, where the subscription is 9",
    apis=("GetTelemetrySubscriptions", "PushTelemetry"),
)
def check_push_follows_subscription(observation: Observation, reporter: Reporter) -> None:
    """Record subscriptions and compare pushes with them."""
    request, response = observation.request_body, observation.response_body
    subscriptions = observation.capture_state.state(_Subscriptions)
    instance = observation.connection.state(_ClientInstance)
    broker = observation.connection.broker.address
    if request is None or response is None or not observation.is_complete:
        reporter.count_unjudged(
            observation.unreadable_reason() or observation.connection.incomplete_reason
        )
        subscriptions.clear()
        return
    if observation.exchange.api == "GetTelemetrySubscriptions":
        if not response.error_code:
            subscriptions[broker, response.client_instance_id] = response
            instance.id = response.client_instance_id
        return
    subscription = subscriptions.get((broker, instance.id or request.client_instance_id))
    if subscription is None:
        reporter.count_unjudged("the subscription is not in the capture")
        return
    reporter.count_judged()
    path, found = _subscription_mismatch(request, subscription)
    if not found:
        return
    reporter.report_violation(Side.CLIENT, found, path=path)
    if not response.error_code:
        reporter.report_violation(Side.BROKER, f"accepted, although {found}", path="error_code")


def _subscription_mismatch(request: Any, subscription: Any) -> tuple[str, str]:
    """Return the invalid field of a push and the defect; both empty if it is valid."""
    if request.client_instance_id != subscription.client_instance_id:
        return "client_instance_id", "the instance id is not that of the subscription"
    if request.subscription_id != subscription.subscription_id:
        return (
            "subscription_id",
            f"the subscription id is {request.subscription_id} instead of "
            f"{subscription.subscription_id}",
        )
    accepted = subscription.accepted_compression_types or ()
    if request.compression_type != _NO_COMPRESSION and request.compression_type not in accepted:
        return "compression_type", f"compression type {request.compression_type} is not accepted"
    if len(request.metrics or b"") > subscription.telemetry_max_bytes:
        limit = subscription.telemetry_max_bytes
        return "metrics", f"the metrics have {len(request.metrics)} bytes, the limit is {limit}"
    return "", ""
