"""F, second part: presence, order and correlation ids of responses."""

from __future__ import annotations

from conform.evidence.observation import Closing, Turn
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.headers import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from dissector.protocol.records import RecordBatch

FIRST_RESERVED_ID = 2**31 - 8
"""First correlation id that the Java client reserves for SASL authentication."""


@rule(
    "F03",
    "Responses come in the order of their requests",
    Severity.ERROR,
    source="SocketServer.scala: a connection's channel is muted until its request is answered",
    asks="Requests of one connection are answered one after the other, in the order in which they "
    "were sent.",
    example="request 1, request 2, response 2, response 1",
)
def in_order(turn: Turn, say: Say) -> None:
    """Check that no later request was answered earlier."""
    if turn.exchange.status != "answered":
        return
    if not turn.whole:
        say.unjudged(turn.talk.partial)
        return
    say.judged()
    newest, correlation_id = turn.talk.newest
    if turn.sent_at < newest:
        say.broken(
            Side.BROKER,
            f"the response to request {turn.exchange.correlation_id} came after that to "
            f"request {correlation_id}, which was sent later",
        )


@rule(
    "F04",
    "A response has the correlation id of its request",
    Severity.ERROR,
    source="AbstractResponse.parseResponse: CorrelationIdMismatchException",
    asks="The correlation id of each response is that of a request that waits for one.",
    example="request 7, response 8",
    on="close",
)
def answers_a_request(closing: Closing, say: Say) -> None:
    """Report responses without requests."""
    talk = closing.talk
    if not closing.whole:
        say.unjudged(talk.partial)
        return
    if talk.repeats and talk.is_disordered:
        say.unjudged("correlation ids repeat, and packets are out of order")
        return
    say.judged()
    waited = {turn.exchange.correlation_id for turn in talk.unanswered}
    for turn in talk.orphans:
        number = turn.exchange.correlation_id
        if number in waited:
            say.unjudged("a response was captured before its request")
        elif not _answers_acks_0(turn):
            what = f"no request waits for the response with correlation id {number}"
            say.broken(Side.BROKER, what, of=turn)


def _answers_acks_0(turn: Turn) -> bool:
    return turn.response is not None and any("acks = 0" in p.what for p in turn.response.problems)


@rule(
    "F05",
    "A request gets one response; Produce with acks = 0 gets none",
    Severity.ERROR,
    source="KafkaApis.handleProduceRequest (acks = 0); SocketServer",
    asks="Each request is answered once, but a Produce request with acks = 0 is not answered.",
    example="Produce v9 with acks = 0, and a response with its correlation id",
)
def no_answer_to_acks_0(turn: Turn, say: Say) -> None:
    """Report responses to Produce requests with acks = 0."""
    if not turn.whole:
        say.unjudged(turn.talk.partial)
        return
    if turn.exchange.status == "unanswered":
        return  # F16 checks these at the end of the connection
    say.judged()
    if turn.exchange.status == "orphan" and _answers_acks_0(turn):
        say.broken(
            Side.BROKER,
            f"a response with correlation id {turn.exchange.correlation_id} answers a Produce "
            "request with acks = 0",
        )


class _Doomed:
    """Stream position of the first Produce request with acks = 0 and a wrong CRC."""

    def __init__(self) -> None:
        self.at: int | None = None


@rule(
    "F06",
    "An error of Produce with acks = 0 ends the connection",
    Severity.ERROR,
    source="KafkaApis.handleProduceRequest: 'Closing connection due to error during produce "
    "request ... with ack=0'",
    asks="Where a Produce request with acks = 0 can't be taken, the broker closes the connection: "
    "nothing else tells the client.",
    example="Produce with acks = 0 and a batch with a wrong CRC, then Metadata, which is answered",
)
def errors_end_it(turn: Turn, say: Say) -> None:
    """Report responses to requests sent after an acks = 0 batch with a wrong CRC."""
    doomed, status = turn.talk.state(_Doomed), turn.exchange.status
    if not turn.whole:
        if status == "no_response":
            say.unjudged(turn.talk.partial)
        return
    if status == "no_response":
        batches = [batch for _, field in turn.carried for batch in field.batches]
        if doomed.at is None and any(isinstance(b, RecordBatch) and not b.crc_ok for b in batches):
            doomed.at = turn.sent_at
    elif doomed.at is not None and turn.sent_at > doomed.at:
        say.judged()
        if status == "answered":
            what = (
                f"request {turn.exchange.correlation_id} is answered behind a batch whose CRC is "
            )
            say.broken(Side.BROKER, f"{what}wrong")


@rule(
    "F16",
    "No request is passed over",
    Severity.ERROR,
    source="SocketServer.scala: a connection's channel is muted until its request is answered",
    asks="Where a later request of the connection is answered, the earlier ones are too.",
    example="request 1, request 2, response 2, and the connection is closed",
    on="close",
)
def none_passed_over(closing: Closing, say: Say) -> None:
    """Report unanswered requests sent before an answered one."""
    if not closing.whole:
        say.unjudged(closing.talk.partial)
        return
    talk = closing.talk
    if not talk.ended:
        if talk.unanswered:
            say.unjudged("the capture ends before the connection does")
        return
    say.judged()
    early = {turn.exchange.correlation_id for turn in talk.orphans}
    for turn in talk.unanswered:
        number = turn.exchange.correlation_id
        if turn.sent_at < talk.newest[0] and number not in early:
            what = f"request {number} was never answered, a later one was"
            say.broken(Side.BROKER, what, of=turn, message=turn.request)


@rule(
    "F13",
    "The highest correlation ids are for logging in",
    Severity.NOTE,
    source="SaslClientAuthenticator.java: MIN_RESERVED_CORRELATION_ID",
    asks="The Java client takes correlation ids from 2^31 - 8 on for what it sends to log in; what "
    "reads its traffic may go by that.",
    example="Metadata with correlation id 2147483647",
)
def reserved_ids(turn: Turn, say: Say) -> None:
    """Report reserved correlation ids on requests other than those of a login."""
    if turn.request is None or turn.api_key is None:
        return
    say.judged()
    number = turn.exchange.correlation_id
    if number is None or number < FIRST_RESERVED_ID:
        return
    if turn.api_key not in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
        say.broken(Side.CLIENT, f"the correlation id is {number}")
