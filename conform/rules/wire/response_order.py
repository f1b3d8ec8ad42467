"""F, second part: presence, order and correlation ids of responses."""

from __future__ import annotations

import numpy as np

from conform.evidence.observation import ConnectionObservation, ConnectionState, Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import (
    Rest,
    Screen,
    none_judged,
    one_judged,
    one_unjudged,
    request_judged,
)
from conform.registry.screened_columns import Bools, ScreenedRows
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE
from dissector.protocol.headers import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from dissector.protocol.records import RecordBatch

FIND_COORDINATOR = 10

FIRST_RESERVED_ID = 2**31 - 8
"""First correlation id that the Java client reserves for SASL authentication."""


def _answered_in_order(rows: ScreenedRows) -> Bools:
    """Let exchanges pass whose response is not before those to earlier requests."""
    passes: Bools = rows.is_in_order & (rows.table.status == ANSWERED)
    return passes


def _due_or_answered(rows: ScreenedRows) -> Bools:
    """Let exchanges pass that are as they should be."""
    is_ended: Bools = np.isin(rows.table.status, (ANSWERED, NO_RESPONSE))
    return is_ended


def _has_usual_id(rows: ScreenedRows) -> Bools:
    usual: Bools = rows.table.correlation_id < FIRST_RESERVED_ID
    return usual


@rule(
    "F03",
    "Responses out of order",
    Severity.ERROR,
    source="SocketServer.scala: the channel of a connection is muted until its request has a "
    "response",
    asks="The responses of a connection arrive in the order of their requests.",
    example="request 1, request 2, response 2, response 1",
    screen=Screen(one_judged, rows=_answered_in_order, unjudged=one_unjudged),
)
def check_response_order(observation: Observation, reporter: Reporter) -> None:
    """Check that no later request got its response earlier."""
    if observation.exchange.status != "answered":
        return
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    reporter.count_judged()
    newest, correlation_id = observation.connection.last_answered
    if observation.request_offset < newest:
        reporter.report_violation(
            Side.BROKER,
            f"the response to request {observation.exchange.correlation_id} came after that to "
            f"request {correlation_id}, which was sent later",
        )


@rule(
    "F04",
    "Response to a request that was never sent",
    Severity.ERROR,
    source="AbstractResponse.parseResponse: CorrelationIdMismatchException",
    asks="The correlation id of each response is that of a request in flight.",
    example="request 7, response 8",
    on="close",
)
def check_response_has_request(observation: ConnectionObservation, reporter: Reporter) -> None:
    """Report responses without requests."""
    connection = observation.connection
    if not observation.is_complete:
        reporter.count_unjudged(connection.incomplete_reason)
        return
    if connection.repeats_correlation_ids and connection.is_disordered:
        reporter.count_unjudged("correlation ids repeat, and packets are out of order")
        return
    reporter.count_judged()
    unanswered = {each.exchange.correlation_id for each in connection.unanswered}
    old_answers = _old_coordinator_answers(connection)
    for orphan in connection.orphans:
        number = orphan.exchange.correlation_id
        if orphan in old_answers:
            reporter.count_unjudged(_OLD_COORDINATOR)
        elif number in unanswered:
            reporter.count_unjudged("a response was captured before its request")
        elif not _is_response_to_acks_0(orphan):
            found = f"no request in flight has correlation id {number}"
            reporter.report_violation(Side.BROKER, found, retained=orphan)


_OLD_COORDINATOR = "Kafka 0.8.2 answers FindCoordinator v0 with correlation id 0"


def _old_coordinator_answers(connection: ConnectionState) -> dict[Observation, Observation]:
    """
    Return responses with id 0 that may be those to FindCoordinator v0, each with its request.

    Source: kafka-python, conn.py ("0.8.2 quirk"): such a broker always writes correlation id 0.
    """
    responses = [each for each in connection.orphans if each.exchange.correlation_id == 0]
    requests = [
        each
        for each in connection.unanswered
        if (each.api_key, each.version) == (FIND_COORDINATOR, 0)
    ]
    return dict(zip(responses, requests, strict=False))


def _is_response_to_acks_0(observation: Observation) -> bool:
    return observation.response is not None and any(
        problem.kind == "unexpected_response" for problem in observation.response.problems
    )


@rule(
    "F05",
    "Response to a Produce request with acks = 0",
    Severity.ERROR,
    source="KafkaApis.handleProduceRequest (acks = 0); SocketServer",
    asks="Each request gets one response, except Produce with acks = 0, which gets none.",
    example="Produce v9 with acks = 0, and a response with its correlation id",
    screen=Screen(one_judged, rows=_due_or_answered, unjudged=one_unjudged),
)
def check_no_response_to_acks_0(observation: Observation, reporter: Reporter) -> None:
    """Report responses to Produce requests with acks = 0."""
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if observation.exchange.status == "unanswered":
        return  # F16 checks these at the end of the connection
    reporter.count_judged()
    if observation.exchange.status == "orphan" and _is_response_to_acks_0(observation):
        found = f"a response with correlation id {observation.exchange.correlation_id}"
        found += " to a Produce request with acks = 0"
        reporter.report_violation(Side.BROKER, found)


class _FailedProduce:
    """Stream offset of the first Produce request with acks = 0 and a wrong CRC."""

    def __init__(self) -> None:
        self.request_offset: int | None = None


def _expects_response(rows: ScreenedRows) -> Bools:
    expected: Bools = rows.table.status != NO_RESPONSE
    return expected


@rule(
    "F06",
    "Connection left open after a failed Produce with acks = 0",
    Severity.ERROR,
    source="KafkaApis.handleProduceRequest: 'Closing connection due to error during produce "
    "request ... with ack=0'",
    asks="If a Produce request with acks = 0 fails, the broker closes the connection, because "
    "there is no response to report the error.",
    example="Produce with acks = 0 and a batch with a wrong CRC, then Metadata, which gets a "
    "response",
    screen=Screen(none_judged, rows=_expects_response, rest=Rest(_FailedProduce)),
)
def check_connection_closed_after_error(observation: Observation, reporter: Reporter) -> None:
    """Report responses to requests sent after an acks = 0 batch with a wrong CRC."""
    failed, status = observation.connection.state(_FailedProduce), observation.exchange.status
    if not observation.is_complete:
        if status == "no_response":
            reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if status == "no_response":
        batches = [batch for _, field in observation.record_fields for batch in field.batches]
        if failed.request_offset is None and any(
            isinstance(each, RecordBatch) and not each.crc_ok for each in batches
        ):
            failed.request_offset = observation.request_offset
            observation.connection.set_rest(_FailedProduce, False)
    elif failed.request_offset is not None and observation.request_offset > failed.request_offset:
        reporter.count_judged()
        if status == "answered":
            request = f"request {observation.exchange.correlation_id}"
            found = f"{request} gets a response after a batch with a wrong CRC"
            reporter.report_violation(Side.BROKER, found)


@rule(
    "F16",
    "Request without a response before one with a response",
    Severity.ERROR,
    source="SocketServer.scala: the channel of a connection is muted until its request has a "
    "response",
    asks="If a request of a connection gets a response, all earlier ones do too.",
    example="request 1, request 2, response 2, and the connection is closed",
    on="close",
)
def check_no_request_skipped(observation: ConnectionObservation, reporter: Reporter) -> None:
    """Report requests without a response that were sent before one with a response."""
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    connection = observation.connection
    if not connection.ended:
        if connection.unanswered:
            reporter.count_unjudged("the capture ends before the connection does")
        return
    if connection.may_have_raw_tokens and connection.unanswered:
        reporter.count_unjudged("raw SASL tokens were sent, which only their order distinguishes")
        return
    reporter.count_judged()
    orphans = {each.exchange.correlation_id for each in connection.orphans}
    old_requests = set(_old_coordinator_answers(connection).values())
    for each in connection.unanswered:
        number = each.exchange.correlation_id
        if each in old_requests:
            reporter.count_unjudged(_OLD_COORDINATOR)
        elif each.request_offset < connection.last_answered[0] and number not in orphans:
            found = f"request {number} has no response, but a later request has one"
            reporter.report_violation(Side.BROKER, found, retained=each, message=each.request)


@rule(
    "F13",
    "Reserved correlation id outside authentication",
    Severity.NOTE,
    source="SaslClientAuthenticator.java: MIN_RESERVED_CORRELATION_ID",
    asks="Correlation ids from 2^31 - 8 on are used only by authentication requests: the Java "
    "client reserves them, and analysers of its traffic may rely on that.",
    example="Metadata with correlation id 2147483647",
    screen=Screen(request_judged, rows=_has_usual_id),
)
def check_reserved_correlation_ids(observation: Observation, reporter: Reporter) -> None:
    """Report reserved correlation ids of requests that do not belong to authentication."""
    if observation.request is None or observation.api_key is None:
        return
    reporter.count_judged()
    number = observation.exchange.correlation_id
    if number is None or number < FIRST_RESERVED_ID:
        return
    if observation.api_key not in (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE):
        reporter.report_violation(Side.CLIENT, f"the correlation id is {number}")
