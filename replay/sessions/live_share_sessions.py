"""
Epochs of share sessions (KIP-932): each broker counts the requests of each member of a share group.

Source: Kafka, ShareSession.java, ShareSessionCache.java.
"""

from __future__ import annotations

from construct import Container

from cluster.conversion.change import Change
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message

INITIAL, FINAL = 0, -1

_APIS = frozenset({"ShareFetch", "ShareAcknowledge"})
_LAST_EPOCH = 2**31 - 1

_Key = tuple[int, str | None, str | None]
"""Broker of the target, group and member."""


class ShareSessions:
    """The share sessions of a pass; a session that a broker does not have is begun there."""

    def __init__(self) -> None:
        self._next_epochs: dict[_Key, int] = {}

    def assign_epochs(self, message: Message, parts: list[tuple[int, Container]]) -> list[Change]:
        """
        Set the epochs that the brokers expect in the requests; return the changes.

        Args:
            message: The captured request.
            parts: The requests, each with the node id of its broker.
        """
        if message.api not in _APIS:
            return []
        changes = []
        for node, body in parts:
            captured = body.share_session_epoch
            if captured <= INITIAL:
                continue
            sent = self._next_epochs.get(_key(node, body), INITIAL)
            body.share_session_epoch = sent
            if sent == INITIAL:
                _forget_acknowledgements(body)
            if sent != captured:
                path = "share_session_epoch"
                changes.append(Change(path, Role.SESSION_EPOCH, captured, sent))
        return changes

    def record_response(self, node: int, body: Container, response: Container) -> None:
        """Record a broker's response to a request."""
        if "share_session_epoch" not in body:
            return
        key = _key(node, body)
        if response.error_code or body.share_session_epoch == FINAL:
            self._next_epochs.pop(key, None)
        else:
            self._next_epochs[key] = body.share_session_epoch % _LAST_EPOCH + 1


def make_repeatable(message: Message) -> None:
    """Remove acknowledgements from a captured request, as they may be sent only once."""
    body = message.body
    if message.api == "ShareFetch" and body is not None:
        _forget_acknowledgements(body)


def _forget_acknowledgements(body: Container) -> None:
    """Remove the acknowledgements: a request that begins a session must not have any."""
    for topic in body.topics:
        for partition in topic.partitions:
            partition.acknowledgement_batches = []


def _key(node: int, body: Container) -> _Key:
    return node, body.group_id, body.member_id
