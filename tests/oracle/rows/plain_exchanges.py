"""
Exchanges of a connection: frames of both sides, paired by a dict of correlation ids.

Source: https://kafka.apache.org/protocol#protocol_network (frames, order);
https://kafka.apache.org/protocol#sasl_handshake and KIP-152 (raw tokens after SaslHandshake v0);
ProduceRequest.json (acks = 0 has no response); KIP-511 (responses to ApiVersions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dissector.protocol.apis import api
from dissector.protocol.headers import RequestHeader, ResponseHeader
from tests.oracle.rows.plain_messages import API_VERSIONS, MessageReader, header_version
from tests.oracle.rows.plain_tcp import Chunk, Connection

PRODUCE, SASL_HANDSHAKE = 0, 17
UNSUPPORTED_VERSION = (35).to_bytes(2, "big")
NO_BODY = MessageReader(b"")
REPLY_TO_ACKS_0 = "response: response to a Produce request with acks = 0, which expects none"


@dataclass
class Frame:
    """A message: its bytes without their size, the packet that completed them, and its begin."""

    size: int
    data: bytes
    packet: int
    time_ns: int
    begun_ns: int


@dataclass
class Request:
    """A request: its header, the values of its body, and what they say."""

    frame: Frame
    key: int | None = None
    version: int | None = None
    id: int | None = None
    client_id: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    body: MessageReader = field(default_factory=lambda: MessageReader(b""))
    problems: list[str] = field(default_factory=list)


def frames_of(chunks: Sequence[Chunk]) -> list[Frame]:
    """Cut the bytes of one side into frames; the last one may be incomplete. TLS has none."""
    if protocol_of(chunks) != "kafka":
        return []
    found: list[Frame] = []
    buffer, begun_ns = bytearray(), 0
    for chunk in chunks:
        begun_ns = begun_ns if buffer else chunk.time_ns
        buffer += chunk.data
        while len(buffer) >= 4 and len(buffer) >= 4 + int.from_bytes(buffer[:4], "big"):
            size = int.from_bytes(buffer[:4], "big")
            at = chunk.packet, chunk.time_ns
            found.append(Frame(size, bytes(buffer[4 : 4 + size]), *at, begun_ns))
            del buffer[: 4 + size]
            begun_ns = chunk.time_ns
    if len(buffer) >= 4:
        size = int.from_bytes(buffer[:4], "big")
        at = chunks[-1].packet, chunks[-1].time_ns
        found.append(Frame(size, bytes(buffer[4:]), *at, begun_ns))
    return found


def protocol_of(chunks: Sequence[Chunk]) -> str:
    """Return the protocol of a side by its first bytes."""
    head = chunks[0].data[:2] if chunks else b""
    return {b"": "nothing", b"\x16\x03": "tls", b"\x15\x03": "tls alert"}.get(head, "kafka")


def read_request(frame: Frame) -> Request:
    """Read a request; one that does not match its declaration has no key."""
    key, version = (int.from_bytes(frame.data[at : at + 2], "big") for at in (0, 2))
    found = api(key)
    if found is None or len(frame.data) < 8:
        return Request(frame)
    reader = MessageReader(frame.data)
    try:
        header = reader.read(RequestHeader, header_version("request", key, version))
        request = Request(frame, key, version, header["correlation_id"], header.get("client_id"))
        request.body = reader
        if key == API_VERSIONS and version > found.request.versions.high:
            low, high = found.request.versions.low, found.request.versions.high
            what = f"version {version} of {found.name} is not known (known: {low}-{high})"
            request.problems.append(f"request at byte {reader.at}: {what}")
            return request
        request.values = reader.read(found.request, version)
    except ValueError:
        return Request(frame)
    request.problems += left_over("request", reader)
    return request


def read_response(request: Request, frame: Frame, ended: str) -> tuple[MessageReader, list[str]]:
    """Read the response to a request; return what it says, and its problems."""
    missing = frame.size - len(frame.data)
    if missing:
        what = f"the connection was {ended} before {missing} bytes of the response came"
        return NO_BODY, [f"response at byte {len(frame.data)}: {what}"]
    assert request.key is not None
    assert request.version is not None
    found = api(request.key)
    assert found is not None
    versions = [request.version]
    if request.key == API_VERSIONS and frame.data[4:6] == UNSUPPORTED_VERSION:
        versions = [0, request.version]
    for version in versions:
        reader = MessageReader(frame.data)
        reader.read(ResponseHeader, header_version("response", request.key, version))
        try:
            reader.read(found.response, version)
        except ValueError:
            continue
        return reader, left_over("response", reader)
    raise AssertionError(f"the response of {frame.packet} does not match its declaration")


def left_over(kind: str, reader: MessageReader) -> list[str]:
    """Return the problem of bytes behind a body."""
    count = len(reader.data) - reader.at
    return [f"{kind} at byte {reader.at}: {count} bytes are left over after the body"] * bool(count)


class Pairing:
    """
    Pairs the frames of one connection.

    Attributes:
        frames: The frames of both sides.
        client: The side that sends requests; None if neither does.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.frames = [frames_of(side.chunks) for side in connection.sides]
        requests = [sum(read_request(f).key is not None for f in each) for each in self.frames]
        # A response may look like a request, but not all do.
        self.client = requests.index(max(requests)) if any(requests) else None
        self.open: dict[int, list[Request]] = {}
        self.tokens: list[Request] = []
        self.unanswerable: set[int | None] = set()
        self.expects_tokens = False

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each exchange."""
        in_order = [(each.packet, side, each) for side in (0, 1) for each in self.frames[side]]
        for _, side, frame in sorted(in_order, key=lambda each: each[0]):
            yield from self.add_request(frame) if side == self.client else self.add_response(frame)
        for request in [each for waiting in self.open.values() for each in waiting] + self.tokens:
            yield self.row("unanswered", request)

    def add_request(self, frame: Frame) -> Iterator[dict[str, Any]]:
        """Add a request; one without a response is a row."""
        request = read_request(frame)
        if request.id is None:
            assert self.expects_tokens, f"packet {frame.packet} has no request"
            self.tokens.append(request)
        elif request.key == PRODUCE and request.values["acks"] == 0:
            self.unanswerable.add(request.id)
            yield self.row("no_response", request)
        else:
            self.open.setdefault(request.id, []).append(request)
            self.expects_tokens = request.key == SASL_HANDSHAKE and request.version == 0

    def add_response(self, frame: Frame) -> Iterator[dict[str, Any]]:
        """Add a response: a row with the oldest request of its id, or alone."""
        number = int.from_bytes(frame.data[:4], "big", signed=True)
        if self.tokens:
            yield self.row("answered", self.tokens.pop(0), frame)
        elif self.open.get(number):
            yield self.row("answered", self.open[number].pop(0), frame)
        else:
            yield self.row("orphan", Request(frame, id=number), frame)

    def row(self, status: str, request: Request, response: Frame | None = None) -> dict[str, Any]:
        """Return the columns of `pairs`; `topics` may have ids, `names` are names of topic ids."""
        reader, problems = NO_BODY, request.problems
        if status == "orphan":
            problems = [REPLY_TO_ACKS_0] * (request.id in self.unanswerable)
        elif response is not None and request.key is not None:
            ended = "reset" if self.connection.reset else "closed"
            reader, found = read_response(request, response, ended)
            problems = problems + found
        assert self.client is not None
        return {
            "client": self.connection.sides[self.client].endpoint,
            "broker": self.connection.sides[1 - self.client].endpoint,
            "origin": None,
            "api_key": request.key,
            "api": name_of(request, status),
            "api_version": request.version,
            "correlation_id": request.id,
            "client_id": request.client_id,
            "status": status,
            **columns("request", None if status == "orphan" else request.frame),
            **columns("response", response),
            **self.parts(status, request, response),
            "errors": list(dict.fromkeys(reader.errors)),
            "topics": list(dict.fromkeys(request.body.topics + reader.topics)),
            "problems": problems,
            "names": request.body.names | reader.names,
        }

    def parts(
        self, status: str, request: Request, response: Frame | None
    ) -> dict[str, float | None]:
        """Return the network's and the broker's part of a latency, in milliseconds."""
        assert self.client is not None
        sender = self.connection.sides[self.client]
        unknown = {"network_ms": None, "server_ms": None}
        if status != "answered" or response is None or request.frame.packet >= response.packet:
            return unknown
        rtts = [rtt for packet, rtt, _ in sender.ways if packet <= response.packet]
        begin, end = request.frame.time_ns, response.time_ns
        if not rtts or end < begin:
            return unknown
        repeats = [time for packet, time in sender.repeats if packet <= response.packet]
        arrived = begin
        if repeats and begin < repeats[-1] <= response.begun_ns:
            arrived = repeats[-1]
            if arrived - begin < 200_000_000:
                return unknown
        server = min(max(response.begun_ns - rtts[-1] - arrived, 0), end - begin)
        return {"network_ms": (end - begin - server) / 1e6, "server_ms": server / 1e6}


def name_of(request: Request, status: str) -> str | None:
    """Return the name of a request's API."""
    found = None if request.key is None else api(request.key)
    return found.name if found else None if status == "orphan" else "SaslToken"


def columns(kind: str, frame: Frame | None) -> dict[str, int | None]:
    """Return the columns of one message."""
    return {
        f"{kind}_packet": None if frame is None else frame.packet,
        f"{kind}_time_ns": None if frame is None else frame.time_ns,
        f"{kind}_bytes": None if frame is None else frame.size,
    }
