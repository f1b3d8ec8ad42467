"""Fetch and share sessions that began in the capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.messages import Message

SESSION_BEFORE_CAPTURE = "belongs to a session that began before the capture"


class CapturedSessions:
    """Collects the sessions of captured requests, one request at a time."""

    def __init__(self) -> None:
        self._started: set[tuple[Any, ...]] = set()
        self._used: dict[int, tuple[Any, ...]] = {}

    def record(self, number: int, exchange: Exchange, request: Message) -> None:
        """Record the session that a request begins or uses; `number` is the request's."""
        body = request.body
        if body is None:
            return
        response = exchange.response.body if exchange.response else None
        if request.api == "Fetch" and "session_id" in body:
            if response is not None and body.session_epoch == 0:
                self._started.add((exchange.broker, response.session_id))
            if body.session_id:
                self._used[number] = exchange.broker, body.session_id
        elif request.api in ("ShareFetch", "ShareAcknowledge"):
            session = exchange.broker, body.group_id, body.member_id
            if body.share_session_epoch == 0:
                self._started.add(session)
            elif body.share_session_epoch > 0:
                self._used[number] = session

    def started_before_capture(self) -> Iterator[int]:
        """Yield the numbers of requests in sessions without a captured beginning."""
        return (number for number, session in self._used.items() if session not in self._started)
