"""Rule G06: members of consumer groups with broker-side assignment (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable

from construct import Container

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule

_JOINS, _LEAVES, _LEAVES_STATIC = 0, -1, -2
_FIRST_WITH_CLIENT_IDS = 1
_MAX_MEMBERS = 20_000


class _MemberEpochs(BoundedDict[tuple[str, str], tuple[int, int]]):
    """Newest epoch of each member on a connection and its response time, by group and member."""

    def __init__(self) -> None:
        super().__init__(_MAX_MEMBERS)


@rule(
    "G06",
    "Invalid heartbeat of a consumer group member, or a wrong response",
    Severity.ERROR,
    source="KIP-848; GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid, "
    "throwIfConsumerGroupMemberEpochIsInvalid",
    asks="Epoch 0 joins, with topics, a rebalance timeout and no partitions; -1 leaves; -2 leaves "
    "temporarily, as a static member; other negative epochs are invalid. A member keeps its id, "
    "and its epoch does not decrease. Brokers reject invalid requests with INVALID_REQUEST, which "
    "makes them a warning, and an epoch above the member's with FENCED_MEMBER_EPOCH (110).",
    example="epoch 0 with rebalance_timeout_ms -1",
    apis=("ConsumerGroupHeartbeat",),
)
def check_consumer_group_epochs(observation: Observation, reporter: Reporter) -> None:
    """Check a heartbeat request and its response."""
    judge_heartbeat(observation, reporter, _invalid_field)


def _invalid_field(request: Container, version: int) -> tuple[str, str]:
    """Return the invalid field of a request and a description; both empty if it is valid."""
    epoch, topics = request.member_epoch, request.topic_partitions
    if epoch < _LEAVES_STATIC:
        return "member_epoch", f"epoch {epoch}"
    if not request.member_id and (version >= _FIRST_WITH_CLIENT_IDS or epoch != _JOINS):
        return "member_id", f"no member id, with epoch {_epoch_text(epoch)}"
    if epoch == _LEAVES_STATIC and request.instance_id is None:
        return "instance_id", "leaves temporarily, but is no static member"
    if epoch != _JOINS:
        return "", ""
    if request.rebalance_timeout_ms == -1:
        return "rebalance_timeout_ms", "joins without a rebalance timeout"
    if topics is None or topics:
        return "topic_partitions", "joins without an empty list of partitions"
    if not request.subscribed_topic_names and request.get("subscribed_topic_regex") is None:
        return "subscribed_topic_names", "joins without topics"
    return "", ""


def _epoch_text(epoch: int) -> str:
    return "above 0" if epoch > 0 else str(epoch)


def judge_heartbeat(
    observation: Observation,
    reporter: Reporter,
    invalid_field: Callable[[Container, int], tuple[str, str]],
) -> None:
    """
    Check the heartbeat of a member with a broker-assigned epoch, and its response.

    Args:
        observation: The exchange.
        reporter: The reporter.
        invalid_field: Returns the invalid field of a request in a version and a description, or
            two empty texts.
    """
    request, response = observation.request_body, observation.response_body
    if request is None:
        reporter.count_unjudged(observation.unreadable_reason(response=False))
        return
    reporter.count_judged()
    path, found = invalid_field(request, observation.version or 0)
    if found:
        is_rejected = response is not None and response.error_code
        severity = Severity.WARNING if is_rejected else None
        reporter.report_violation(Side.CLIENT, found, path=path, severity=severity)
    if response is None or response.error_code:
        return
    if found:
        reporter.report_violation(Side.BROKER, f"answered with error 0: {found}", path="error_code")
    _judge_epoch(observation, reporter, request, response)


def _judge_epoch(
    observation: Observation, reporter: Reporter, request: Container, response: Container
) -> None:
    """Compare the epochs of request and response with each other and with earlier responses."""
    epoch, new_epoch = request.member_epoch, response.member_epoch
    if epoch >= 0 and new_epoch <= 0:
        reporter.report_violation(
            Side.BROKER, f"a member's epoch is {new_epoch}", path="member_epoch"
        )
    elif epoch < 0 and new_epoch != epoch:
        reporter.report_violation(
            Side.BROKER, f"leaves with {epoch}, the response has {new_epoch}", path="member_epoch"
        )
    if request.member_id and response.member_id and request.member_id != response.member_id:
        found = f"member {request.member_id!r} gets a response for {response.member_id!r}"
        reporter.report_violation(Side.BROKER, found, path="member_id")
    member = request.member_id or response.member_id or ""
    epochs = observation.connection.state(_MemberEpochs)
    key = request.group_id, member
    previous = epochs.get(key)
    request_ns, response_ns = (
        observation.exchange.request_time_ns or 0,
        observation.exchange.response_time_ns or 0,
    )
    is_known = previous is not None and previous[1] < request_ns and observation.is_complete
    # A heartbeat missing from the capture may have changed the epoch.
    is_known = is_known and not (
        observation.connection.incomplete_reason or observation.connection.is_disordered
    )
    if epoch > 0 and previous is not None and is_known:
        if epoch > previous[0]:
            found = f"epoch {epoch} is accepted, the member has {previous[0]}"
            reporter.report_violation(Side.BROKER, found, path="error_code")
        elif 0 < new_epoch < previous[0]:
            found = f"the member's epoch is {new_epoch}, after {previous[0]}"
            reporter.report_violation(Side.BROKER, found, path="member_epoch")
    if new_epoch > 0:
        epochs[key] = new_epoch, response_ns
    else:
        epochs.pop(key, None)
