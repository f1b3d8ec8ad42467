"""Answers to share consumers: the captured acquired records, in order (KIP-932)."""

from __future__ import annotations

import asyncio

from construct import Container

from serve.answers.client_request import ClientRequest
from serve.answers.epoch_groups import Unserved
from serve.answers.mirrored_errors import error_answer
from serve.answers.served_state import ServedState
from serve.matching.exchange_keys import share_key


class ShareAnswers:
    """Answers ShareFetch and ShareAcknowledge."""

    def __init__(self, state: ServedState, unserved: Unserved) -> None:
        self._state = state
        self._unserved = unserved

    async def fetch(self, request: ClientRequest) -> Container:
        """Return the member's next captured records; without any, wait up to max_wait_ms."""
        found, body = self._next(request), request.body
        key = share_key(request.api, body.group_id, body.member_id)
        is_captured = bool(self._state.recording.index.numbers(key))
        self._unserved(request, "" if is_captured else "records of this share member")
        if found is None:
            await asyncio.sleep(request.body.max_wait_ms / 1000)
            return Container(error_code=0, responses=[])
        return found

    async def acknowledge(self, request: ClientRequest) -> Container:
        """Accept acknowledgements."""
        return self._next(request) or error_answer(request.api_key, request.body, 0)

    def _next(self, request: ClientRequest) -> Container | None:
        body = request.body
        key = share_key(request.api, body.group_id, body.member_id)
        if self._state.recording.index.next_unused(key) is None:
            return None
        return self._state.take_response([key])
