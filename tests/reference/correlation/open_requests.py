"""The requests in flight on one connection."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.columns import NEVER, Int32s
from dissector.engine.correlation import state_tables as limits
from dissector.engine.correlation.entries import MAX_SUPPRESSED
from tests.reference.correlation.framer import Frame
from tests.reference.correlation.plausible_frames import fits_request

_NO_IDS: Int32s = np.zeros(0, np.int32)
_NO_RANGE = 1 << 31, -(1 << 31)


class OpenRequest(NamedTuple):
    """
    A request in flight; a raw SASL token has meaningless key, version and id.

    Attributes:
        number: Its place in the order of the requests.
        frame: Its frame.
        api_key: Its API key.
        api_version: Its version.
        correlation_id: Its correlation id.
    """

    number: int
    frame: Frame
    api_key: int
    api_version: int
    correlation_id: int


class SuppressedIds:
    """
    The newest ids of requests that expect no response.

    Attributes:
        ring: Room for `MAX_SUPPRESSED` ids; the newest one overwrites the oldest.
        count: Number of added ids.
    """

    __slots__ = ("count", "ring")

    def __init__(self, ring: Int32s = _NO_IDS, count: int = 0) -> None:
        self.ring = ring
        self.count = count

    def __contains__(self, correlation_id: int) -> bool:
        return bool((self.ring[: self.count] == correlation_id).any())

    def add(self, correlation_id: int) -> None:
        """Add an id; drop the oldest one at the limit."""
        if not self.count:
            self.ring = np.zeros(MAX_SUPPRESSED, np.int32)
        self.ring[self.count % MAX_SUPPRESSED] = correlation_id
        self.count += 1


class OpenRequests:
    """
    The requests in flight, found by correlation id and by age.

    Attributes:
        suppressed: The newest ids of requests that expect no response.
        tokens_seen: Whether raw tokens were sent.
        id_range: Bounds of the correlation ids in flight, both included; they may be wider.
    """

    def __init__(self) -> None:
        self._by_id: dict[int, deque[OpenRequest]] = {}
        self._by_age: OrderedDict[int, OpenRequest] = OrderedDict()
        self._bytes = 0
        self._next_number = 0
        # Most connections have none, and an empty deque is as large as twelve empty lists.
        self._tokens: deque[OpenRequest] | None = None
        self.suppressed = SuppressedIds()
        self.tokens_seen = False
        self.id_range = _NO_RANGE

    def __len__(self) -> int:
        return len(self._by_age)

    def __contains__(self, correlation_id: int) -> bool:
        return correlation_id in self._by_id

    @property
    def has_tokens(self) -> bool:
        """Whether raw tokens are in flight; their responses have no ids."""
        return bool(self._tokens)

    @property
    def first_packet(self) -> int:
        """The first packet of the requests in flight; `NEVER` without one."""
        return min((each.frame.packet for each in self._by_age.values()), default=NEVER)

    @property
    def total_bytes(self) -> int:
        """Bytes of the requests in flight."""
        return self._bytes

    def oldest_first(self) -> list[OpenRequest]:
        """Return the requests in flight, oldest first."""
        return list(self._by_age.values())

    def restore(
        self, frames: Iterable[Frame], suppressed: SuppressedIds, tokens_seen: bool
    ) -> None:
        """Restore the state from the tables."""
        for frame in frames:
            for _ in self.add(frame):
                raise AssertionError("restored requests exceed the limits")
        self.suppressed = suppressed
        self.tokens_seen = tokens_seen

    def ids(self) -> list[int]:
        """Return the correlation ids in flight."""
        return list(self._by_id)

    def oldest(self, correlation_id: int) -> OpenRequest:
        """Return the oldest request with an id."""
        return self._by_id[correlation_id][0]

    def add(self, frame: Frame) -> Iterator[OpenRequest]:
        """Add a request; yield those dropped to keep the limits."""
        key = int.from_bytes(frame.data[0:2], "big", signed=True)
        version = int.from_bytes(frame.data[2:4], "big", signed=True)
        correlation_id = int.from_bytes(frame.data[4:8], "big", signed=True)
        request = OpenRequest(self._next_number, frame, key, version, correlation_id)
        self._next_number += 1
        self._by_age[request.number] = request
        self.tokens_seen |= frame.token or frame.in_login
        if frame.token:
            self._tokens = self._tokens or deque()
            self._tokens.append(request)
        elif len(frame.data) >= 8:
            lowest, highest = self.id_range if self._by_id else _NO_RANGE
            self.id_range = min(lowest, correlation_id), max(highest, correlation_id)
            self._by_id.setdefault(correlation_id, deque()).append(request)
        self._bytes += len(frame.data)
        while len(self) > limits.MAX_OPEN or (
            self._bytes > limits.MAX_OPEN_BYTES and len(self) > 1
        ):
            yield self._remove(next(iter(self._by_age.values())))

    def suppress(self, frame: Frame) -> None:
        """Record the id of a request that expects no response."""
        self.suppressed.add(int.from_bytes(frame.data[4:8], "big", signed=True))

    def is_suppressed(self, frame: Frame) -> bool:
        """Return whether a response belongs to a request that expects none."""
        if len(frame.data) < 4:
            return False
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        return correlation_id in self.suppressed

    def pop_match(self, frame: Frame) -> OpenRequest | None:
        """
        Remove and return the request of a response.

        A raw token has no id: its response follows those of all earlier requests. The last token of
        a login may have none, so a response that fits the request with its id is not a token's.
        Source: SaslServerAuthenticator.handleSaslToken of Apache Kafka (`response != null`).
        """
        oldest = next(iter(self._by_age.values()), None)
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        same_id = self._by_id.get(correlation_id) if len(frame.data) >= 4 else None
        if oldest is not None and oldest.frame.token:
            is_token = not same_id or not fits_request(
                frame.data, frame.size, same_id[0].frame.data
            )
            if is_token:
                return self._remove(oldest)
        if same_id:
            return self._remove(same_id[0])
        return self._remove(self._tokens[0]) if self._tokens else None

    def pop_lost(self, answered: OpenRequest, lost_before: int) -> Iterator[OpenRequest]:
        """
        Remove and yield the requests before an answered one that precede a gap, and tokens.

        Responses have the order of their requests, so theirs were in the gap.
        Source: https://kafka.apache.org/protocol#protocol_network
        """
        while self._by_age:
            oldest = next(iter(self._by_age.values()))
            is_lost = oldest.frame.token or oldest.frame.packet < lost_before
            if oldest.number > answered.number or not is_lost:
                return
            yield self._remove(oldest)

    def pop_all(self) -> list[OpenRequest]:
        """Remove all requests in flight and return them, oldest first; drop suppressed ids."""
        self.suppressed = SuppressedIds()
        remaining = list(self._by_age.values())
        for request in remaining:
            self._remove(request)
        return remaining

    def _remove(self, request: OpenRequest) -> OpenRequest:
        """Remove a request: always the oldest of its id, or the oldest token."""
        del self._by_age[request.number]
        self._bytes -= len(request.frame.data)
        if request.frame.token:
            if self._tokens:
                self._tokens.popleft()
            return request
        same_id = self._by_id.get(request.correlation_id)
        # A request truncated before its id is not listed by id.
        if same_id and same_id[0] is request:
            same_id.popleft()
            if not same_id:
                del self._by_id[request.correlation_id]
        return request
