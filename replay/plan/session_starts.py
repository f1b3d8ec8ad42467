"""Which fetch and share sessions of a capture began in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.messages import Message

MIDWAY = "belongs to a session that began before the capture"


class SessionsSeen:
    """Notes requests of a capture, one by one."""

    def __init__(self) -> None:
        self._given: set[tuple[Any, ...]] = set()
        self._taken: dict[int, tuple[Any, ...]] = {}

    def note(self, number: int, exchange: Exchange, request: Message) -> None:
        """Note which session a request begins or uses; `number` is its own."""
        body = request.body
        if body is None:
            return
        answer = exchange.response.body if exchange.response else None
        if request.api == "Fetch" and "session_id" in body:
            if answer is not None and body.session_epoch == 0:
                self._given.add((exchange.broker, answer.session_id))
            if body.session_id:
                self._taken[number] = exchange.broker, body.session_id
        elif request.api in ("ShareFetch", "ShareAcknowledge"):
            session = exchange.broker, body.group_id, body.member_id
            if body.share_session_epoch == 0:
                self._given.add(session)
            elif body.share_session_epoch > 0:
                self._taken[number] = session

    def midway(self) -> Iterator[int]:
        """Yield the numbers of requests in sessions whose beginning was not captured."""
        return (number for number, session in self._taken.items() if session not in self._given)
