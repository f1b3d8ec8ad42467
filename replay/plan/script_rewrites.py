"""
Requests that hooks of users rewrite or leave out.

As with schema ids, requests are rewritten before they are planned: order, names and ids are those
of what is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from construct import Container
from numpy.typing import NDArray

from cluster.client.pending_request import codecs_of
from dissector.engine.reading.capture import Window
from dissector.engine.tables.exchange_table import NO_RESPONSE, NONE, UNANSWERED, Exchanges
from dissector.hooks.hook_functions import Hook, find_hooks
from dissector.hooks.hook_types import Request
from dissector.protocol.expected_response import expects_response
from dissector.protocol.messages import Message, decode_request
from replay.plan.schema_mapping import with_frames

Place: TypeAlias = tuple[int, int | None, int | None]
"""Connection, packet of the request, from 1, and correlation id."""


class ScriptRewrites:
    """
    The hooks that rewrite requests.

    Attributes:
        left_out: Why requests of the last window are not sent.
    """

    def __init__(self, scripts: Iterable[str], warn: Callable[[str], None]) -> None:
        """
        Load the hooks.

        Args:
            scripts: Names of scripts.
            warn: Gets a line for each installed hook that can't be loaded.

        Raises:
            UsageError: A script can't be run.
        """
        self._hooks = tuple(find_hooks("rewrite", scripts, warn))
        self.left_out: Mapping[Place, str] = {}

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def rewritten(self, window: Window) -> Window:
        """Return a window with other requests; under the definitions of the capture."""
        table = window.exchanges
        changed: dict[int, bytes] = {}
        left_out: dict[Place, str] = {}
        is_read = (table.request.start != NONE) & (table.api_key != NONE) & ~table.token
        for row in np.flatnonzero(is_read).tolist():
            place = place_of(table, row)
            frame = table.frame(table.request, row)
            new = None if frame is None else self._frame(frame, place)
            if isinstance(new, str):
                left_out[place] = new
            elif new is not None and new != frame:
                changed[row] = new
        self.left_out = left_out
        if not changed:
            return window
        table = replace(table, status=_status(table, changed))
        return replace(window, exchanges=with_frames(table, "request", changed))

    def _frame(self, frame: bytes, place: Place) -> bytes | str | None:
        """Return another frame, or why it is left out; None for one that can't be read."""
        message = decode_request(frame)
        body = message.body
        if body is None or message.problems or message.api is None or message.api_version is None:
            return None
        connection, packet, _ = place
        request = Request(
            message.api, message.api_version, message.client_id, body, connection, packet
        )
        head = request._replace(body=None)
        for hook in self._hooks:
            try:
                found = hook.function(request)
                is_whole = isinstance(found, Request) and found._replace(body=None) == head
            except (Exception, SystemExit) as error:
                return hook.failure(error)
            if found is None:
                return f"{hook.place} leaves it out"
            if not is_whole:
                return f"{hook.place} changes more than the body"
            request = found
        return _built(message, request.body, self._hooks[-1])


def place_of(table: Exchanges, row: int) -> Place:
    """Return the place of a request."""
    packet = int(table.request.packet[row])
    return int(table.connection[row]), packet + 1, int(table.correlation_id[row])


def _status(table: Exchanges, changed: Mapping[int, bytes]) -> NDArray[np.int8]:
    """Return the status of exchanges with other requests: Produce with acks = 0 has no response."""
    status = table.status.copy()
    for row, frame in changed.items():
        is_expected = expects_response(frame)
        if is_expected != (status[row] != NO_RESPONSE):
            status[row] = UNANSWERED if is_expected else NO_RESPONSE
    return status


def _built(message: Message, body: Container, hook: Hook) -> bytes | str:
    assert message.api_key is not None
    assert message.api_version is not None
    try:
        codec = codecs_of(message.api_key, message.api_version).request
        return message.frame[: message.body_start] + codec.build(body)
    except Exception as error:  # a hook may put anything into a body
        return f"{hook.place}: its body can't be built: {type(error).__name__}"
