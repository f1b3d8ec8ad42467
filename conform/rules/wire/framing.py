"""F, first part: frames and headers."""

from __future__ import annotations

from collections.abc import Callable

from conform.evidence.observation import ConnectionObservation, Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    Screen,
    Shape,
    one_unjudged,
    request_judged,
    response_judged,
)
from dissector.protocol.headers import API_VERSIONS

MAX_REQUEST_BYTES = 100 << 20
"""Default of the broker setting socket.request.max.bytes."""


@rule(
    "F01",
    "Bytes outside frames, or an invalid frame size",
    Severity.ERROR,
    source="NetworkReceive.java: a size that is negative or above socket.request.max.bytes closes "
    "the connection",
    asks="A stream consists of frames: a size of 4 bytes, not negative and in requests at most "
    "100 MiB, followed by that many bytes. A side that closes the connection within a frame gets "
    "a warning.",
    example="ff ff ff fe in place of the size of a frame",
    on="close",
)
def check_framing(observation: ConnectionObservation, reporter: Reporter) -> None:
    """Check for bytes outside frames, and for truncated frames."""
    skipped = observation.connection.skipped_bytes
    if not any(skipped) and not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if observation.connection.last_answered[0] < 0:
        reporter.count_unjudged("the connection has no response, so it may not be Kafka")
        return
    if observation.connection.may_have_raw_tokens:
        reporter.count_unjudged("raw SASL tokens were sent, which only their order distinguishes")
        return
    if any(skipped) and observation.connection.skips_before_frames:
        # Whoever answered has accepted them: a proxy, or a broker as tokens of a login.
        reason = "the bytes before the first frame may be those of a proxy or a login"
        reporter.count_unjudged(reason)
        return
    reporter.count_judged()
    for side, count in zip(Side, skipped, strict=True):
        if count:
            reporter.report_violation(side, f"bytes outside plausible frames: {count}")
    for retained in observation.connection.truncated:
        _judge_truncated(retained, reporter)


def _judge_truncated(observation: Observation, reporter: Reporter) -> None:
    """Report a truncated frame: an oversized request, or a connection closed by the sender."""
    message = observation.truncated_message
    if message is None:
        return
    side = Side.CLIENT if message.kind == "request" else Side.BROKER
    if message.kind == "request" and message.size > MAX_REQUEST_BYTES:
        found = f"a frame size of {message.size} bytes, which brokers reject"
        reporter.report_violation(side, found, message=message, retained=observation)
    elif observation.connection.ended == "fin":
        found = (
            f"{message.size - len(message.frame)} bytes of the last {message.kind} were never sent"
        )
        reporter.report_violation(
            side, found, message=message, retained=observation, severity=Severity.WARNING
        )


def _judge_decode_mismatch(
    id: str, kind: str, observation: Observation, reporter: Reporter
) -> None:
    """Report the decode mismatches of a rule in messages of a kind; empty: of both kinds."""
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if any(kind in ("", each.kind) for each in observation.decodable_messages):
        reporter.count_judged()
    for message, mismatch in observation.decode_mismatches:
        if mismatch.rule == id:
            side = Side.CLIENT if message.kind == "request" else Side.BROKER
            severity = Severity.WARNING if mismatch.is_tolerated else None
            reporter.report_violation(
                side, mismatch.found, message=message, path=mismatch.path, severity=severity
            )


def _decodable_fast_check(kind: str) -> Callable[[Observation], int | None]:
    """Return the fast check of a kind of messages: the exchange has no decode mismatches."""

    def count_decodable(observation: Observation) -> int | None:
        if not observation.is_complete or observation.decode_mismatches:
            return None
        return int(any(kind in ("", each.kind) for each in observation.decodable_messages))

    return count_decodable


_ANY = _decodable_fast_check("")
_REQUEST, _RESPONSE = _decodable_fast_check("request"), _decodable_fast_check("response")


def _has_other_response(shape: Shape) -> int:
    return int(shape.response is not None and shape.api_key != API_VERSIONS)


def _other_unjudged(api_key: int) -> int:
    return int(api_key != API_VERSIONS)


_ANY_SCREEN = Screen(lambda shape: min(shape.messages, 1), unjudged=one_unjudged)
_REQUEST_SCREEN = Screen(request_judged, unjudged=one_unjudged)
_RESPONSE_SCREEN = Screen(response_judged, unjudged=one_unjudged)


@rule(
    "F02",
    "Frame that does not match its declaration",
    Severity.ERROR,
    source="the generated readers of Kafka's messages; Kafka ignores bytes after the body, so "
    "they are a warning",
    asks="Header and body decode by their declarations, and no bytes are left over.",
    example="a Heartbeat v4 response with one more byte after its tagged fields",
    fast_check=_ANY,
    screen=_ANY_SCREEN,
)
def check_body_is_consumed(observation: Observation, reporter: Reporter) -> None:
    """Report decode mismatches that no other rule explains."""
    _judge_decode_mismatch("F02", "", observation, reporter)


@rule(
    "F07",
    "Response in another version than its request",
    Severity.ERROR,
    source="clients/src/main/resources/common/message/README.md: 'The version of a response must "
    "always match'",
    asks="The body of a response has the version of the request.",
    example="a Metadata v9 request, and a Metadata v1 response",
    fast_check=_RESPONSE,
    screen=_RESPONSE_SCREEN,
)
def check_response_version(observation: Observation, reporter: Reporter) -> None:
    """Report responses encoded in another version."""
    _judge_decode_mismatch("F07", "response", observation, reporter)


@rule(
    "F08",
    "Request with the wrong header version",
    Severity.ERROR,
    source="ApiMessageTypeGenerator.java: requestHeaderVersion (KIP-482)",
    asks="The header of a request has version 2 in flexible versions, else 1; ControlledShutdown "
    "v0 has header version 0.",
    example="Metadata v9 without tagged fields in its header",
    fast_check=_REQUEST,
    screen=_REQUEST_SCREEN,
)
def check_request_header(observation: Observation, reporter: Reporter) -> None:
    """Report requests with another header version."""
    _judge_decode_mismatch("F08", "request", observation, reporter)


@rule(
    "F09",
    "ApiVersions response with another header version than 0",
    Severity.ERROR,
    source="ApiMessageTypeGenerator.java: responseHeaderVersion (KIP-511)",
    asks="The header of an ApiVersions response has version 0, whatever the version of the body.",
    example="ApiVersions v3 with tagged fields in the response's header",
    apis=("ApiVersions",),
    fast_check=_RESPONSE,
    screen=_RESPONSE_SCREEN,
)
def check_api_versions_header(observation: Observation, reporter: Reporter) -> None:
    """Report ApiVersions responses with the other header version."""
    _judge_decode_mismatch("F09", "response", observation, reporter)


@rule(
    "F10",
    "Response with the wrong header version",
    Severity.ERROR,
    source="ApiMessageTypeGenerator.java: responseHeaderVersion (KIP-482)",
    asks="The header of a response has version 1 in flexible versions, else 0.",
    example="Metadata v9 without tagged fields in the response's header",
    screen=Screen(_has_other_response, unjudged=_other_unjudged),
)
def check_response_header(observation: Observation, reporter: Reporter) -> None:
    """Report responses with the other header version, except those of ApiVersions."""
    if observation.api_key != API_VERSIONS:
        _judge_decode_mismatch("F10", "response", observation, reporter)


@rule(
    "F11",
    "Client id encoded as a compact string",
    Severity.ERROR,
    source="RequestHeader.json: ClientId has flexibleVersions none",
    asks="The length of the client id is an int16, also in header version 2. With a compact "
    "client id, small requests can't be recognised as Kafka, and break F01.",
    example="Metadata v9 with the client id as 05 's' 'h' 'o' 'p', not 00 04 's' 'h' 'o' 'p'",
    fast_check=_REQUEST,
    screen=_REQUEST_SCREEN,
)
def check_client_id(observation: Observation, reporter: Reporter) -> None:
    """Report requests with a compact client id."""
    _judge_decode_mismatch("F11", "request", observation, reporter)
