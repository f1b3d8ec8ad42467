"""
Epochs of share sessions (KIP-932): each broker counts the requests of each member of a share group.

Source: Kafka, ShareSession.java, ShareSessionCache.java.
"""

from __future__ import annotations

from construct import Container

from dissector.protocol.messages import Message
from replay.fields.field_layout import Role
from replay.model.outcome import Change

INITIAL, FINAL = 0, -1

_APIS = frozenset({"ShareFetch", "ShareAcknowledge"})
_LAST_EPOCH = 2**31 - 1

_Key = tuple[int, str | None, str | None]
"""Broker of the target, group and member."""


class ShareSessions:
    """The share sessions of a pass; a broker without one gets what begins one."""

    def __init__(self) -> None:
        self._next: dict[_Key, int] = {}

    def put(self, message: Message, parts: list[tuple[int, Container]]) -> list[Change]:
        """
        Put the epochs that the brokers expect into the requests; return what was changed.

        Args:
            message: The captured request.
            parts: Broker and request.
        """
        if message.api not in _APIS:
            return []
        changes = []
        for node, body in parts:
            captured = body.share_session_epoch
            if captured <= INITIAL:
                continue
            sent = self._next.get(_key(node, body), INITIAL)
            body.share_session_epoch = sent
            if sent == INITIAL:
                _forget_acknowledgements(body)
            if sent != captured:
                path = "share_session_epoch"
                changes.append(Change(path, Role.SESSION_EPOCH, captured, sent))
        return changes

    def finish(self, node: int, body: Container, answer: Container) -> None:
        """Note what became of a request that was asked of a broker."""
        if "share_session_epoch" not in body:
            return
        key = _key(node, body)
        if answer.error_code or body.share_session_epoch == FINAL:
            self._next.pop(key, None)
        else:
            self._next[key] = body.share_session_epoch % _LAST_EPOCH + 1


def repeat(message: Message) -> None:
    """Make a captured request one that can be asked again: records are acknowledged only once."""
    body = message.body
    if message.api == "ShareFetch" and body is not None:
        _forget_acknowledgements(body)


def _forget_acknowledgements(body: Container) -> None:
    """Take out what a request that begins a session must not have."""
    for topic in body.topics:
        for partition in topic.partitions:
            partition.acknowledgement_batches = []


def _key(node: int, body: Container) -> _Key:
    return node, body.group_id, body.member_id
