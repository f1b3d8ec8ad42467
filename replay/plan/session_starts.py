"""Fetch and share sessions that began in the capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dissector.protocol.messages import Message

SESSION_BEFORE_CAPTURE = "belongs to a session that began before the capture"


class CapturedSessions:
    """Collects the sessions of captured requests, one request at a time."""

    def __init__(self) -> None:
        self._started: set[tuple[Any, ...]] = set()
        self._used: dict[int, tuple[Any, ...]] = {}

    def record(self, number: int, broker: str, request: Message, response: Message | None) -> None:
        """Record the session of a broker that a request begins or uses; `number` is its own."""
        body = request.body
        if body is None:
            return
        if request.api == "Fetch" and "session_id" in body:
            answer = response.body if response is not None else None
            given = None if answer is None else answer.session_id
            used = body.session_id, body.session_epoch
            self.record_fetch(number, broker, used, given)
        elif request.api in ("ShareFetch", "ShareAcknowledge"):
            session = broker, body.group_id, body.member_id
            if body.share_session_epoch == 0:
                self._started.add(session)
            elif body.share_session_epoch > 0:
                self._used[number] = session

    def record_fetch(
        self, number: int, broker: str, session: tuple[int, int], given: int | None
    ) -> None:
        """
        Record the session that a Fetch begins or uses.

        Args:
            number: The number of the request.
            broker: The address of the broker.
            session: Session id and epoch of the request.
            given: The session id of the response; None without one.
        """
        session_id, epoch = session
        if given is not None and epoch == 0:
            self._started.add((broker, given))
        if session_id:
            self._used[number] = broker, session_id

    def started_before_capture(self) -> Iterator[int]:
        """Yield the numbers of requests in sessions without a captured beginning."""
        return (number for number, session in self._used.items() if session not in self._started)
