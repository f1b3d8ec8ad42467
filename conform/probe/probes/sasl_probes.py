"""Probes of requests before authentication."""

from __future__ import annotations

from conform.probe.probe_registry import ProbeContext, probe
from conform.probe.probe_reporter import ProbeReporter
from conform.probe.probe_target import NotJudged
from conform.probe.raw_exchange import RawExchange

_UNKNOWN_MECHANISM = "KAFKASHARK"


@probe(
    "P16",
    "Before authentication only ApiVersions and the handshake are answered",
    source="SaslServerAuthenticator.handleKafkaRequest",
    asks="The connection is closed where anything else comes first.",
    example="Metadata is answered before SaslAuthenticate",
)
async def before_authentication(probed: ProbeContext, say: ProbeReporter) -> None:
    """Send other requests before the handshake."""
    target = probed.target
    if not target.security.mechanism:
        raise NotJudged("no SASL was asked for (--sasl)")
    for name in ("Metadata", "SaslAuthenticate"):
        line = await target.open_connection(authenticated=False)
        try:
            said = await line.request(name, target.newest_version(name), {}, target.close_timeout_s)
            refused = _is_closed(said)
            say.check(refused, f"{said}, before anything else: {_reaction_text(said)}", said)
        finally:
            line.close()


def _is_closed(said: RawExchange) -> bool:
    """Return whether the connection was closed without a response."""
    return said.response is None and not said.is_timeout


def _reaction_text(said: RawExchange) -> str:
    return said.failure or "was answered"


@probe(
    "P17",
    "A SASL mechanism that there is not is refused with the list of those that there are",
    source="SaslServerAuthenticator.handleHandshakeRequest; SaslHandshakeResponse.json; "
    "KafkaApis.handleSaslHandshakeRequest where the listener has no SASL",
    asks="UNSUPPORTED_SASL_MECHANISM (33) with the mechanisms; ILLEGAL_SASL_STATE (34) where the "
    "listener has no SASL, or it is done.",
    example="SaslHandshake for an unknown mechanism is answered with error 0",
)
async def unknown_mechanism(probed: ProbeContext, say: ProbeReporter) -> None:
    """Request an unknown mechanism."""
    target = probed.target
    fields = {"mechanism": _UNKNOWN_MECHANISM}
    for version in target.versions("SaslHandshake"):
        said = await target.request("SaslHandshake", fields, version)
        say.check_error(said, "error_code", "ILLEGAL_SASL_STATE")
        if not target.security.mechanism:
            continue
        line = await target.open_connection(authenticated=False)
        try:
            said = await line.request("SaslHandshake", version, fields)
            if say.check_error(said, "error_code", "UNSUPPORTED_SASL_MECHANISM"):
                told = said.field("mechanisms")
                what = f"{said}: mechanisms {told} lack the one that we use"
                say.check(target.security.mechanism in told, what, said, "mechanisms")
        finally:
            line.close()
