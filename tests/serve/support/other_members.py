"""Group members that the capture lacks: with other assignors, or without the other members."""

from __future__ import annotations

import struct
from typing import Any

from dissector.protocol.error_codes import error_code
from tests.serve.support.raw_client import RawClient

NAME, BY_EPOCHS = "kafka4-librdkafka-group", "kafka4-librdkafka-group-848"
"""Captures of groups, classic and with member epochs."""

_TOPIC = f"{NAME}.orders".encode()
_SUBSCRIPTION = struct.pack(">hih", 0, 1, len(_TOPIC)) + _TOPIC + bytes(4)


def join(client: RawClient, *assignors: str) -> Any:
    """Join the classic group with some assignors; return the response."""
    values = {"group_id": f"{NAME}.group", "protocol_type": "consumer"}
    values |= {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 200}
    offers = [{"name": each, "metadata": _SUBSCRIPTION} for each in assignors]
    member = ""
    while True:
        answer = client.ask("JoinGroup", 5, member_id=member, protocols=offers, **values)
        if answer.error_code != error_code("MEMBER_ID_REQUIRED"):
            return answer
        member = answer.member_id


def beat_alone(client: RawClient) -> None:
    """Join the group with member epochs, whose other members do not come, and get nothing."""
    values = {"group_id": f"{BY_EPOCHS}.group", "instance_id": None, "rack_id": None}
    values |= {"rebalance_timeout_ms": 1000, "subscribed_topic_regex": None}
    values |= {"server_assignor": None, "topic_partitions": []}
    member, epoch, topics = "alone", 0, [f"{BY_EPOCHS}.orders"]
    for names in (topics, None):
        given = {"member_id": member, "member_epoch": epoch, "subscribed_topic_names": names}
        answer = client.ask("ConsumerGroupHeartbeat", 1, **given, **values)
        assert not answer.error_code
        assert names or answer.assignment is None
        member, epoch = answer.member_id, answer.member_epoch
