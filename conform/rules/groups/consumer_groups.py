"""G06: members of consumer groups with broker-side assignment (KIP-848)."""

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
    "Members join, stay and leave by their epochs",
    Severity.ERROR,
    source="KIP-848; GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid, "
    "throwIfConsumerGroupMemberEpochIsInvalid",
    asks="Epoch 0 joins, with topics, a rebalance timeout and no partitions; -1 leaves, -2 leaves "
    "a static member's place; other negative epochs are none; a member keeps its id, and its "
    "epoch does not go down. Brokers refuse the rest with "
    "INVALID_REQUEST, which makes it a warning, and an epoch above the member's with "
    "FENCED_MEMBER_EPOCH (110).",
    example="epoch 0 with rebalance_timeout_ms -1",
    apis=("ConsumerGroupHeartbeat",),
)
def consumer_group_epochs(turn: Observation, say: Reporter) -> None:
    """Check a heartbeat request and its response."""
    judge_heartbeat(turn, say, _invalid_field)


def _invalid_field(asked: Container, version: int) -> tuple[str, str]:
    """Return the invalid field of a request and a description; both empty if it is valid."""
    epoch, topics = asked.member_epoch, asked.topic_partitions
    if epoch < _LEAVES_STATIC:
        return "member_epoch", f"epoch {epoch}"
    if not asked.member_id and (version >= _FIRST_WITH_CLIENT_IDS or epoch != _JOINS):
        return "member_id", f"no member id, with epoch {_epoch_text(epoch)}"
    if epoch == _LEAVES_STATIC and asked.instance_id is None:
        return "instance_id", "leaves for a while, but is no static member"
    if epoch != _JOINS:
        return "", ""
    if asked.rebalance_timeout_ms == -1:
        return "rebalance_timeout_ms", "joins without a rebalance timeout"
    if topics is None or topics:
        return "topic_partitions", "joins, but does not say that it holds no partitions"
    if not asked.subscribed_topic_names and asked.get("subscribed_topic_regex") is None:
        return "subscribed_topic_names", "joins without topics"
    return "", ""


def _epoch_text(epoch: int) -> str:
    return "above 0" if epoch > 0 else str(epoch)


def judge_heartbeat(
    turn: Observation, say: Reporter, invalid_field: Callable[[Container, int], tuple[str, str]]
) -> None:
    """
    Check the heartbeat of a member whose epoch the broker gives, and its response.

    Args:
        turn: The exchange.
        say: The reporter.
        invalid_field: Returns the invalid field of a request in a version and a description, or
            two empty texts.
    """
    asked, told = turn.request_body, turn.response_body
    if asked is None:
        say.count_unjudged(turn.unreadable_reason(response=False))
        return
    say.count_judged()
    path, found = invalid_field(asked, turn.version or 0)
    if found:
        is_refused = told is not None and told.error_code
        severity = Severity.WARNING if is_refused else None
        say.report_violation(Side.CLIENT, found, path=path, severity=severity)
    if told is None or told.error_code:
        return
    if found:
        say.report_violation(Side.BROKER, f"answered with error 0: {found}", path="error_code")
    _judge_epoch(turn, say, asked, told)


def _judge_epoch(turn: Observation, say: Reporter, asked: Container, told: Container) -> None:
    """Compare the epochs of request and response with each other and with earlier responses."""
    epoch, now = asked.member_epoch, told.member_epoch
    if epoch >= 0 and now <= 0:
        say.report_violation(Side.BROKER, f"a member's epoch is {now}", path="member_epoch")
    elif epoch < 0 and now != epoch:
        say.report_violation(
            Side.BROKER, f"leaves with {epoch}, is told {now}", path="member_epoch"
        )
    if asked.member_id and told.member_id and asked.member_id != told.member_id:
        found = f"member {asked.member_id!r} is answered as {told.member_id!r}"
        say.report_violation(Side.BROKER, found, path="member_id")
    member = asked.member_id or told.member_id or ""
    known = turn.connection.state(_MemberEpochs)
    key = asked.group_id, member
    before = known.get(key)
    sent_ns, told_ns = turn.exchange.request_time_ns or 0, turn.exchange.response_time_ns or 0
    is_known = before is not None and before[1] < sent_ns and turn.is_complete
    # A heartbeat missing from the capture may have changed the epoch.
    is_known = is_known and not (turn.connection.incomplete_reason or turn.connection.is_disordered)
    if epoch > 0 and before is not None and is_known:
        if epoch > before[0]:
            found = f"epoch {epoch} is taken, where the member was told {before[0]}"
            say.report_violation(Side.BROKER, found, path="error_code")
        elif 0 < now < before[0]:
            found = f"the member's epoch is {now}, after {before[0]}"
            say.report_violation(Side.BROKER, found, path="member_epoch")
    if now > 0:
        known[key] = now, told_ns
    else:
        known.pop(key, None)
