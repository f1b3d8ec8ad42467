"""F, first part: frames, and headers against their declarations."""

from __future__ import annotations

from collections.abc import Callable

from conform.evidence.observation import Closing, Turn
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.headers import API_VERSIONS

MOST_REQUEST_BYTES = 100 << 20
"""The default of socket.request.max.bytes."""


@rule(
    "F01",
    "A stream is cut into frames",
    Severity.ERROR,
    source="NetworkReceive.java: a size that is negative or above socket.request.max.bytes closes "
    "the connection",
    asks="All that is sent are frames: a size of 4 bytes, not negative and in requests not above "
    "100 MiB, and so many bytes. A side that closes in the middle of a frame is warned of.",
    example="ff ff ff fe, where the size of a frame is due",
    on="close",
)
def is_framed(closing: Closing, say: Say) -> None:
    """Check for captured bytes outside frames, and for frames cut off."""
    skipped = closing.talk.skipped
    if not any(skipped) and not closing.whole:
        say.unjudged(closing.talk.partial)
        return
    if closing.talk.newest[0] < 0:
        say.unjudged("nothing was answered on the connection, so it may not be Kafka")
        return
    if closing.talk.has_tokens:
        say.unjudged("raw tokens were sent, which only the order of the capture tells apart")
        return
    say.judged()
    for side, count in zip(Side, skipped, strict=True):
        if count:
            say.broken(side, f"bytes in no frame that can be believed: {count}")
    for turn in closing.talk.cut:
        _judge_cut(turn, say)


def _judge_cut(turn: Turn, say: Say) -> None:
    """Report a truncated frame: a request too large for a broker, or a sender that closed."""
    message = turn.cut
    if message is None:
        return
    side = Side.CLIENT if message.kind == "request" else Side.BROKER
    if message.kind == "request" and message.size > MOST_REQUEST_BYTES:
        found = f"a size of {message.size} bytes, which brokers refuse"
        say.broken(side, found, message=message, of=turn)
    elif turn.talk.ended == "fin":
        found = f"{message.size - len(message.frame)} bytes of the last {message.kind} never came"
        say.broken(side, found, message=message, of=turn, severity=Severity.WARNING)


def _judge_misfit(id: str, kind: str, turn: Turn, say: Say) -> None:
    """Report the decode mismatches of a rule; `kind`: request, response, or empty for both."""
    if not turn.whole:
        say.unjudged(turn.talk.partial)
        return
    if any(kind in ("", each.kind) for each in turn.declared):
        say.judged()
    for message, why in turn.misfits:
        if why.rule == id:
            side = Side.CLIENT if message.kind == "request" else Side.BROKER
            severity = Severity.WARNING if why.is_tolerated else None
            say.broken(side, why.found, message=message, path=why.path, severity=severity)


def _glance(kind: str) -> Callable[[Turn], int | None]:
    """Return the fast check for exchanges without decode mismatches, for messages of a kind."""

    def is_plain(turn: Turn) -> int | None:
        if not turn.whole or turn.misfits:
            return None
        return int(any(kind in ("", each.kind) for each in turn.declared))

    return is_plain


_ANY, _REQUEST, _RESPONSE = _glance(""), _glance("request"), _glance("response")


@rule(
    "F02",
    "A frame is consumed exactly",
    Severity.ERROR,
    source="the generated readers of Kafka's messages; bytes left over Kafka does not look at, so "
    "they are a warning",
    asks="Header and body fill the frame as their declarations say, and nothing is left over.",
    example="a Heartbeat v4 response with a byte more behind its tagged fields",
    glance=_ANY,
)
def is_consumed(turn: Turn, say: Say) -> None:
    """Report decode mismatches that no other rule explains."""
    _judge_misfit("F02", "", turn, say)


@rule(
    "F07",
    "A response has the version of its request",
    Severity.ERROR,
    source="clients/src/main/resources/common/message/README.md: 'The version of a response must "
    "always match'",
    asks="The body of a response is in the version in which the request was.",
    example="Metadata v9 is asked, and the response is a Metadata v1",
    glance=_RESPONSE,
)
def in_version(turn: Turn, say: Say) -> None:
    """Report responses encoded in another version."""
    _judge_misfit("F07", "response", turn, say)


@rule(
    "F08",
    "A request has the header of its version",
    Severity.ERROR,
    source="ApiMessageTypeGenerator.java: requestHeaderVersion (KIP-482)",
    asks="The header of a flexible version is version 2, else 1; of ControlledShutdown v0 it is 0.",
    example="Metadata v9 without tagged fields in its header",
    glance=_REQUEST,
)
def request_header(turn: Turn, say: Say) -> None:
    """Report requests with another header version."""
    _judge_misfit("F08", "request", turn, say)


@rule(
    "F09",
    "The response of ApiVersions has header version 0",
    Severity.ERROR,
    source="ApiMessageTypeGenerator.java: responseHeaderVersion (KIP-511)",
    asks="The header of a response of ApiVersions is version 0 whatever the body's version.",
    example="ApiVersions v3 with tagged fields in the response's header",
    apis=("ApiVersions",),
    glance=_RESPONSE,
)
def api_versions_header(turn: Turn, say: Say) -> None:
    """Report ApiVersions responses with the other header version."""
    _judge_misfit("F09", "response", turn, say)


@rule(
    "F10",
    "A response has the header of its version",
    Severity.ERROR,
    source="ApiMessageTypeGenerator.java: responseHeaderVersion (KIP-482)",
    asks="The header of a flexible version is version 1, else 0.",
    example="Metadata v9 without tagged fields in the response's header",
)
def response_header(turn: Turn, say: Say) -> None:
    """Report responses with the other header version, except those of ApiVersions."""
    if turn.api_key != API_VERSIONS:
        _judge_misfit("F10", "response", turn, say)


@rule(
    "F11",
    "The client id is never a compact string",
    Severity.ERROR,
    source="RequestHeader.json: ClientId has flexibleVersions none",
    asks="The length of the client id is an int16, also in header version 2. A compact one "
    "makes small requests so unlike Kafka that they break F01.",
    example="Metadata v9 whose header says 05 's' 'h' 'o' 'p', not 00 04 's' 'h' 'o' 'p'",
    glance=_REQUEST,
)
def client_id(turn: Turn, say: Say) -> None:
    """Report requests with a compact client id."""
    _judge_misfit("F11", "request", turn, say)
