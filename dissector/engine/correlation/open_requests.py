"""The requests of one connection that wait for their responses."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dissector.capture.columns import NEVER
from dissector.engine.correlation.framer import Frame

MAX_OPEN = 10_000
"""Requests that may wait on one connection; the oldest is told as unanswered beyond that."""

MAX_OPEN_BYTES = 64 << 20
"""Bytes of the requests that may wait on one connection."""

MAX_SUPPRESSED = 1000
"""Requests without a response whose ids are remembered, should one come all the same."""


class OpenRequest(NamedTuple):
    """A request that waits: its frame, key, version and id; of a raw SASL token these are none."""

    number: int
    frame: Frame
    api_key: int
    api_version: int
    correlation_id: int


class SuppressedIds:
    """
    The newest ids of requests that were due no response.

    Attributes:
        ids: Oldest first.
        counts: How often each is among them.
    """

    __slots__ = ("counts", "ids")

    def __init__(self) -> None:
        self.ids: deque[int] = deque()
        self.counts: dict[int, int] = {}

    def add(self, correlation_id: int) -> None:
        """Remember an id; the oldest is forgotten where there are too many."""
        self.ids.append(correlation_id)
        self.counts[correlation_id] = self.counts.get(correlation_id, 0) + 1
        if len(self.ids) > MAX_SUPPRESSED:
            oldest = self.ids.popleft()
            self.counts[oldest] -= 1
            if not self.counts[oldest]:
                del self.counts[oldest]


class OpenRequests:
    """
    The requests that wait, found by correlation id and by age.

    Attributes:
        tokens_seen: Whether raw tokens were sent.
    """

    def __init__(self) -> None:
        self._by_id: dict[int, deque[OpenRequest]] = {}
        self._by_age: OrderedDict[int, OpenRequest] = OrderedDict()
        self._bytes = 0
        self._numbers = 0
        # Most connections have neither, and an empty deque takes as much as twelve empty lists.
        self._tokens: deque[OpenRequest] | None = None
        self._waived: SuppressedIds | None = None
        self.tokens_seen = False

    def __len__(self) -> int:
        return len(self._by_age)

    def __contains__(self, correlation_id: int) -> bool:
        return correlation_id in self._by_id

    @property
    def has_tokens(self) -> bool:
        """Whether raw tokens wait, whose answers have no ids."""
        return bool(self._tokens)

    @property
    def first_packet(self) -> int:
        """The packet of the request that waits longest; a large number where none waits."""
        first = next(iter(self._by_age.values()), None)
        return NEVER if first is None else first.frame.packet

    @property
    def total_bytes(self) -> int:
        """How many bytes the requests have that wait."""
        return self._bytes

    def oldest_first(self) -> list[OpenRequest]:
        """Return the requests that wait, oldest first."""
        return list(self._by_age.values())

    @property
    def suppressed_count(self) -> int:
        """How many ids are remembered of requests that were due no response."""
        return 0 if self._waived is None else len(self._waived.ids)

    def suppressed_ids(self) -> list[int]:
        """Return the ids of requests that were due no response, as far as they are remembered."""
        return [] if self._waived is None else list(self._waived.ids)

    def restore(self, frames: Iterable[Frame], waived: list[int], tokens_seen: bool) -> None:
        """Go on where others were."""
        for frame in frames:
            for _ in self.add(frame):
                raise AssertionError("these waited before")
        if waived:
            self._waived = SuppressedIds()
            for correlation_id in waived:
                self._waived.add(correlation_id)
        self.tokens_seen = tokens_seen

    def ids(self) -> list[int]:
        """Return the correlation ids that wait."""
        return list(self._by_id)

    def oldest(self, correlation_id: int) -> OpenRequest:
        """Return the oldest request with an id."""
        return self._by_id[correlation_id][0]

    def add(self, frame: Frame) -> Iterator[OpenRequest]:
        """Let a request wait; yield those that therefore wait no longer."""
        key = int.from_bytes(frame.data[0:2], "big", signed=True)
        version = int.from_bytes(frame.data[2:4], "big", signed=True)
        correlation_id = int.from_bytes(frame.data[4:8], "big", signed=True)
        request = OpenRequest(self._numbers, frame, key, version, correlation_id)
        self._numbers += 1
        self._by_age[request.number] = request
        if frame.token:
            self.tokens_seen = True
            self._tokens = self._tokens or deque()
            self._tokens.append(request)
        elif len(frame.data) >= 8:
            self._by_id.setdefault(correlation_id, deque()).append(request)
        self._bytes += len(frame.data)
        while len(self) > MAX_OPEN or (self._bytes > MAX_OPEN_BYTES and len(self) > 1):
            yield self._remove(next(iter(self._by_age.values())))

    def suppress(self, frame: Frame) -> None:
        """Take note of a request that is due no response."""
        if self._waived is None:
            self._waived = SuppressedIds()
        self._waived.add(int.from_bytes(frame.data[4:8], "big", signed=True))

    def is_suppressed(self, frame: Frame) -> bool:
        """Tell whether a response answers a request that was due none."""
        if len(frame.data) < 4:
            return False
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        return self._waived is not None and correlation_id in self._waived.counts

    def pop_match(self, frame: Frame) -> OpenRequest | None:
        """
        Take out the request that a response answers.

        A raw token has no id: the response to it is the next one after those of all earlier
        requests.
        """
        first = next(iter(self._by_age.values()), None)
        if first is not None and first.frame.token:
            return self._remove(first)
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        waiting = self._by_id.get(correlation_id) if len(frame.data) >= 4 else None
        if waiting:
            return self._remove(waiting[0])
        return self._remove(self._tokens[0]) if self._tokens else None

    def pop_all(self) -> list[OpenRequest]:
        """Take out all that still wait, oldest first; forget what was due no response."""
        self._waived = None
        left = list(self._by_age.values())
        for request in left:
            self._remove(request)
        return left

    def _remove(self, request: OpenRequest) -> OpenRequest:
        """Take out a request: always the oldest of its id, or the oldest token."""
        del self._by_age[request.number]
        self._bytes -= len(request.frame.data)
        if request.frame.token:
            if self._tokens:
                self._tokens.popleft()
            return request
        waiting = self._by_id.get(request.correlation_id)
        # A request that was cut before its id waits under none.
        if waiting and waiting[0] is request:
            waiting.popleft()
            if not waiting:
                del self._by_id[request.correlation_id]
        return request
