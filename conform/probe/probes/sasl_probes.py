"""Probes of requests before authentication."""

from __future__ import annotations

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged
from conform.probe.raw_exchange import RawExchange

_UNKNOWN_MECHANISM = "KAFKASHARK"


@probe(
    "P16",
    "Request answered before authentication",
    source="SaslServerAuthenticator.handleKafkaRequest",
    asks="The connection is closed where anything other than ApiVersions or SaslHandshake comes "
    "first.",
    example="Metadata is answered before SaslAuthenticate",
)
async def probe_before_authentication(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Send other requests before the handshake."""
    target = context.target
    if not target.security.mechanism:
        raise NotJudged("no SASL mechanism is given (--sasl)")
    for name in ("Metadata", "SaslAuthenticate"):
        connection = await target.open_connection(authenticated=False)
        try:
            exchange = await connection.request(
                name, target.newest_version(name), {}, target.close_timeout_s
            )
            is_closed = _is_closed(exchange)
            reporter.check(
                is_closed, f"{exchange}, as the first request: {_reaction_text(exchange)}", exchange
            )
        finally:
            connection.close()


def _is_closed(exchange: RawExchange) -> bool:
    """Return whether the connection was closed without a response."""
    return exchange.response is None and not exchange.is_timeout


def _reaction_text(exchange: RawExchange) -> str:
    return exchange.failure or "was answered"


@probe(
    "P17",
    "Unknown SASL mechanism not rejected with the list of mechanisms",
    source="SaslServerAuthenticator.handleHandshakeRequest; SaslHandshakeResponse.json; "
    "KafkaApis.handleSaslHandshakeRequest where the listener has no SASL",
    asks="UNSUPPORTED_SASL_MECHANISM (33) with the supported mechanisms; ILLEGAL_SASL_STATE (34) "
    "where the listener has no SASL, or authentication is complete.",
    example="SaslHandshake for an unknown mechanism is answered with error 0",
)
async def probe_unknown_mechanism(context: ProbeContext, reporter: ProbeReporter) -> None:
    """Request an unknown mechanism."""
    target = context.target
    fields = {"mechanism": _UNKNOWN_MECHANISM}
    for version in target.versions("SaslHandshake"):
        exchange = await target.request("SaslHandshake", fields, version)
        reporter.check_error(exchange, "error_code", "ILLEGAL_SASL_STATE")
        if not target.security.mechanism:
            continue
        connection = await target.open_connection(authenticated=False)
        try:
            exchange = await connection.request("SaslHandshake", version, fields)
            if reporter.check_error(exchange, "error_code", "UNSUPPORTED_SASL_MECHANISM"):
                mechanisms = exchange.field("mechanisms")
                found = f"{exchange}: mechanisms {mechanisms} lack the mechanism in use"
                reporter.check(
                    target.security.mechanism in mechanisms, found, exchange, "mechanisms"
                )
        finally:
            connection.close()
