"""Group members in captured requests: the member, and its generation or epoch."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.messages import Message
from replay.order.group_order import REBALANCES, leaving_members

BY_EPOCH = frozenset({"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"})
"""APIs of groups with broker-assigned partitions."""

MEMBER_APIS = BY_EPOCH | {
    "Heartbeat",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "SyncGroup",
    "TxnOffsetCommit",
}
"""APIs with requests of joined members."""


def members_in(message: Message) -> Iterator[tuple[str, str, int]]:
    """Yield group, member and generation or epoch of each member that a request is sent for."""
    body = message.body
    if body is None or message.api not in MEMBER_APIS:
        return
    if message.api == "LeaveGroup":
        for member in leaving_members(body):
            yield body.group_id, member, 1
        return
    for element in body.get("groups") or [body]:
        names = "generation_id", "generation_id_or_member_epoch", "member_epoch"
        generation = next((element[name] for name in names if name in element), -1)
        if element.get("group_id") and element.get("member_id") and generation > 0:
            yield element.group_id, element.member_id, generation


def generation_in(message: Message, member: str) -> int:
    """Return the generation or epoch of a member in a request."""
    return next((generation for _, name, generation in members_in(message) if name == member), 1)


def was_not_member(captured: CapturedExchange) -> bool:
    """Return whether the captured broker did not accept the sender as a member."""
    response = captured.response_message()
    error = 0 if response is None or response.body is None else response.body.get("error_code", 0)
    return error not in (0, REBALANCES)


def consumer_subscription(topics: Sequence[str]) -> bytes:
    """Encode a consumer's subscription, in its oldest version: ConsumerProtocolSubscription v0."""
    names = [each.encode(errors="surrogateescape") for each in topics]
    listed = b"".join(struct.pack(">h", len(each)) + each for each in names)
    return struct.pack(">hi", 0, len(names)) + listed + struct.pack(">i", -1)
