"""
One connection as a Kafka conversation: who is the broker, what are the frames, what answers what.

Rule 1: the two streams are read in the order of the capture. A stream that waits behind a hole
holds the other one's later frames back (`Chunks.horizon`), so that a response never meets its
request too early or too late.

Rule 2: a request is paired with the response that carries its correlation id; of several in flight
with the same id, the oldest. Raw SASL tokens have no id and are paired in order.

Rule 3: a response that was captured before its request, as where two taps are merged, waits for
it: for `EARLY_NS`, and only if its id is beyond all that were asked before, as those of all known
clients ascend.

Rule 4: nothing is invented. Frames are entered where they can be believed (`entry`); all
other bytes are counted as skipped.

Source: https://kafka.apache.org/protocol#protocol_network (order); KIP-43, KIP-152 (SASL tokens).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dissector.capture.columns import NEVER
from dissector.engine.correlation import resync
from dissector.engine.correlation.exchange_rows import Row
from dissector.engine.correlation.frame_checks import HEADER_BYTES, is_request, is_tls, sane_request
from dissector.engine.correlation.frame_checks_kernel import is_answered
from dissector.engine.correlation.framer import MAX_FRAME_BYTES, Frame, Stream
from dissector.engine.correlation.open_requests import Open, OpenRequests
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, ORPHAN, UNANSWERED
from dissector.protocol.headers import SASL_HANDSHAKE

START_BYTES = 1 << 16
"""How far into a connection whose beginning was captured the first request may lie."""

KEEP_BYTES = 1 << 20
"""How much of a stream is kept, at least, in which no frame could be believed yet."""

EARLY_NS = 50_000_000
"""How long a response may be captured before its request."""

MAX_TOKEN_BYTES = 1 << 20

_HANDSHAKE_V0 = SASL_HANDSHAKE.to_bytes(2, "big") + b"\0\0"

DOUBTFUL = "doubtful"
"""What is spoken where that is known only when the capture has ended."""

Emit = Callable[[Row], None]


class Conversation:
    """
    The state of one connection.

    Attributes:
        speaks: `kafka`, `tls`, `other`, or empty while that is open.
        client: The side that sends requests; None while that is open.
        doubtful: Where it has ended, the side of which so few responses are there that only one
            that is a broker on other connections is believed to have sent them; else None.
        streams: The two directions.
        horizon: How far each side may be read, as `Chunks.horizon` says; set before the bytes are
            given.
    """

    __slots__ = (
        "_asked",
        "_emit",
        "_now_ns",
        "_open",
        "_ready",
        "_tokens",
        "client",
        "connection",
        "doubtful",
        "horizon",
        "speaks",
        "streams",
        "whole",
    )

    def __init__(
        self, connection: int, whole: bool, emit: Emit, max_frame_bytes: int = MAX_FRAME_BYTES
    ) -> None:
        """
        Begin a conversation.

        Args:
            connection: Its number.
            whole: Whether the beginning of the connection was captured.
            emit: Called with each exchange as it ends.
            max_frame_bytes: Larger frames are passed over as a problem.
        """
        self.connection = connection
        self.whole = whole
        self.speaks = ""
        self.client: int | None = None
        self.doubtful: int | None = None
        self.streams = (Stream(0, max_frame_bytes), Stream(1, max_frame_bytes))
        self._emit = emit
        self.horizon = (NEVER, NEVER)
        self._open = OpenRequests()
        self._ready: tuple[deque[Frame], deque[Frame]] = (deque(), deque())
        self._tokens = False
        # The highest id that was asked; only a whole connection may wait for the first.
        self._asked = -1 if whole else NEVER
        self._now_ns = 0

    def resume(self, client: int, asked: int, now_ns: int, open_requests: OpenRequests) -> None:
        """Go on where another was that spoke Kafka by the rules; its streams are set by hand."""
        self.speaks, self.client = "kafka", client
        self._asked, self._now_ns, self._open = asked, now_ns, open_requests
        self.streams[client].judge = self._judge_request
        self.streams[1 - client].judge = self._judge_response

    @property
    def asked(self) -> int:
        """The highest id that was asked."""
        return self._asked

    @property
    def now_ns(self) -> int:
        """When the newest packet was captured."""
        return self._now_ns

    @property
    def open_requests(self) -> OpenRequests:
        """The requests that wait."""
        return self._open

    @property
    def is_busy(self) -> bool:
        """Whether something waits for more than bytes and responses: tokens, holes, order."""
        return (
            self._tokens
            or self._open.tokens_wait
            or any(self._ready)
            or self.horizon != (NEVER, NEVER)
        )

    def data(self, side: int, data: bytes, packet: int, time_ns: int) -> None:
        """Take the next bytes of one side."""
        if self.speaks in ("", "kafka"):
            self._now_ns = max(self._now_ns, time_ns)
            if data:
                self.streams[side].add(data, packet, time_ns)
            self._advance()

    def gap(self, side: int, length: int, packet: int, time_ns: int) -> None:
        """Take note of bytes of one side that were not captured."""
        if self.speaks in ("", "kafka"):
            self._now_ns = max(self._now_ns, time_ns)
            cut = self.streams[side].last_packet == packet
            self._advance(resync.Break(side, cut, length))
            self.streams[side].lose(length, packet, time_ns)
            self._advance()

    def end(self) -> None:
        """Tell all that is still open: the connection, or the capture, has ended."""
        self.horizon = (NEVER, NEVER)
        self._now_ns = NEVER
        for side in (0, 1):
            self._advance(resync.Break(side, self.whole and self.streams[side].base == 0))
        if self.speaks == "":
            self._recognise_responses()
        if self.doubtful is None:
            self._conclude()

    def decide(self, believed: bool) -> None:
        """Say whether a doubtful conversation that has ended is with a broker."""
        assert self.doubtful is not None
        stream = self.streams[self.doubtful]
        self.doubtful, self.speaks = None, ""
        if believed and resync.enter_lonely_responses(stream, self._judge_response, 1):
            self._is_kafka(1 - stream.side)
        else:
            self._is("other")
        self._conclude()

    def _conclude(self) -> None:
        """Tell what is still open."""
        if self.client is not None:
            responses = self.streams[1 - self.client]
            if not responses.in_step:
                resync.enter_lonely_responses(responses, self._judge_response)
            self._advance()
        for stream in self.streams:
            frame = stream.finish() if self.client is not None else None
            if frame is not None:
                self._make_ready(frame)
            if not stream.in_step:
                stream.pass_over(len(stream.buffer))
        self._pair()
        self._now_ns = 0
        for request in self._open.pop_all():
            self._emit_request(UNANSWERED, request)

    @property
    def low_water(self) -> int:
        """The first packet with a frame that waits for an answer or its turn."""
        if self.speaks not in ("", "kafka"):
            return NEVER
        waiting = [frames[0].packet for frames in self._ready if frames]
        return min([*waiting, self._open.first_packet, *self.horizon])

    def assume(self, client: int) -> None:
        """Take a side for the client's because the user says so."""
        self._is_kafka(client)
        if self.whole:
            self.streams[client].enter(0, self._judge_request)

    def is_other(self) -> None:
        """Leave this connection alone."""
        self._is("other")

    def _advance(self, broken: resync.Break | None = None) -> None:
        """Cut and pair as far as the bytes go; `broken` says where no more follow at once."""
        if self.client is None:
            self._recognise(broken)
        if self.client is None:
            return
        requests, responses = self.streams[self.client], self.streams[1 - self.client]
        moved = True
        while moved:
            if not requests.in_step:
                resync.enter_requests(requests, self._judge_request, broken)
            base, in_step = requests.base, requests.in_step
            self._cut(requests)
            self._cut(responses)
            self._pair()
            # Where step was lost behind some frames, more may follow at once.
            moved = in_step and not requests.in_step and requests.base > base
            if not responses.in_step and len(self._open):
                known = self.horizon[self.client]
                moved |= resync.enter_responses(
                    responses, self._judge_response, self._open, broken, known
                )
        for stream in (requests, responses):
            if not stream.in_step:
                self._forget(stream, searched=stream is requests or len(self._open) > 0)

    def _forget(self, stream: Stream, searched: bool) -> None:
        """
        Pass over what was searched in vain, beyond what is kept for a second look.

        Args:
            stream: Out of step.
            searched: Whether it is searched for frames at all; else its bytes count as they come.
        """
        useless = stream.scanned - stream.base if searched else len(stream.buffer)
        if useless <= 2 * KEEP_BYTES:
            return
        lonely = not self.whole if self.client is None else stream.side != self.client
        if lonely and resync.enter_lonely_responses(stream, self._judge_response):
            if self.client is None:
                self._is_kafka(1 - stream.side)
            return
        stream.pass_over(useless - KEEP_BYTES)

    def _cut(self, stream: Stream) -> None:
        """Move the frames of a stream to where they wait for their turn."""
        while (frame := stream.next_frame()) is not None:
            self._make_ready(frame)

    def _make_ready(self, frame: Frame) -> None:
        token = frame.side == self.client and self._is_token(frame)
        self._ready[frame.side].append(frame._replace(token=True) if token else frame)

    def _is_token(self, frame: Frame) -> bool:
        """Tell raw SASL tokens: they follow SaslHandshake v0, until a Kafka request does."""
        if self._tokens and not is_request(frame.data):
            return True
        self._tokens = frame.data[:4] == _HANDSHAKE_V0
        return False

    def _recognise(self, broken: resync.Break | None) -> None:
        """Find out what is spoken, and who is the client."""
        for stream in self.streams:
            if (
                stream.base == 0
                and stream.fresh
                and len(stream.buffer) >= 5
                and is_tls(stream.buffer)
            ):
                self._is("tls")
                return
        # Whoever opened a connection speaks first and is the client.
        for stream in self.streams[: 1 if self.whole else 2]:
            if resync.enter_requests(stream, self._judge_request, broken):
                self._is_kafka(stream.side)
                return
        if self.whole and self.streams[0].scanned > START_BYTES:
            self._is("other")
            return
        for stream in self.streams:
            self._forget(stream, searched=not self.whole or stream.side == 0)
            if self.client is not None:
                return

    def _recognise_responses(self) -> None:
        """Know a broker by its responses alone, where the client's side was not captured."""
        for stream in self.streams:
            if resync.enter_lonely_responses(stream, self._judge_response):
                self._is_kafka(1 - stream.side)
                return
        few = [
            each.side for each in self.streams if resync.lonely_responses_at(each, 1) is not None
        ]
        if len(few) == 1:
            self.doubtful, self.speaks = few[0], DOUBTFUL
        elif any(stream.end for stream in self.streams):
            self._is("other")

    def _is_kafka(self, client: int) -> None:
        self.speaks = "kafka"
        self.client = client
        responses = self.streams[1 - client]
        responses.scanned = responses.base
        if self.whole and responses.base == 0 and not responses.in_step:
            responses.enter(0, self._judge_response)

    def _is(self, what: str) -> None:
        self.speaks = what
        for stream in self.streams:
            stream.pass_over(len(stream.buffer))

    def _judge_request(self, buffer: bytearray, size: int) -> bool:
        if self._tokens and 0 <= size <= MAX_TOKEN_BYTES:
            return True
        if size < 8:
            return False
        return len(buffer) < HEADER_BYTES or sane_request(buffer, 0)

    def _judge_response(self, buffer: bytearray, size: int) -> bool:
        if size > self.streams[0].limit:
            return len(buffer) < 8 or int.from_bytes(buffer[4:8], "big", signed=True) in self._open
        return size >= (0 if self._open.tokens_seen else 4)

    def _pair(self) -> None:
        """Take the frames that are ready, of both sides, in the order of the capture."""
        if self.client is None:
            return
        ready = self._ready
        while ready[0] or ready[1]:
            side = (
                0 if not ready[1] or (ready[0] and ready[0][0].packet < ready[1][0].packet) else 1
            )
            if side != self.client and self._is_early(ready[side][0]):
                side = self.client
                if not ready[side]:
                    return
            if ready[side][0].packet >= self.horizon[1 - side]:
                return
            frame = ready[side].popleft()
            if side == self.client:
                self._request(frame)
            else:
                self._response(frame)

    def _is_early(self, frame: Frame) -> bool:
        """Tell whether a response may have been captured before its request."""
        if len(frame.data) < 4 or self._now_ns - frame.time_ns >= EARLY_NS:
            return False
        correlation_id = int.from_bytes(frame.data[:4], "big", signed=True)
        return self._asked < correlation_id and not self._open.tokens_wait

    def _request(self, frame: Frame) -> None:
        if not frame.token and len(frame.data) >= 8:
            correlation_id = int.from_bytes(frame.data[4:8], "big", signed=True)
            self._asked = (
                correlation_id if self._asked == NEVER else max(self._asked, correlation_id)
            )
        if not frame.token and not is_answered(frame.data):
            self._open.waive(frame)
            self._emit(Row(self.connection, NO_RESPONSE, frame.side, frame, None))
            return
        for dropped in self._open.add(frame):
            self._emit_request(UNANSWERED, dropped)

    def _response(self, frame: Frame) -> None:
        request = self._open.answered_by(frame)
        if request is None:
            unasked = self._open.waived(frame)
            self._emit(Row(self.connection, ORPHAN, 1 - frame.side, None, frame, unasked=unasked))
        else:
            self._emit_request(ANSWERED, request, frame)

    def _emit_request(self, status: int, request: Open, response: Frame | None = None) -> None:
        frame = request.frame
        self._emit(Row(self.connection, status, frame.side, frame, response, frame.token))
