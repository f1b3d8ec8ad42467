"""Probes of requests before authentication."""

from __future__ import annotations

from conform.probe.probe_registry import Probed, probe
from conform.probe.probe_reporter import LiveSay
from conform.probe.probe_target import NotJudged
from conform.probe.raw_exchange import Said

_NO_MECHANISM = "KAFKASHARK"


@probe(
    "P16",
    "Before authentication only ApiVersions and the handshake are answered",
    source="SaslServerAuthenticator.handleKafkaRequest",
    asks="The connection is closed where anything else comes first.",
    example="Metadata is answered before SaslAuthenticate",
)
async def nothing_before(probed: Probed, say: LiveSay) -> None:
    """Send other requests before the handshake."""
    target = probed.target
    if not target.security.mechanism:
        raise NotJudged("no SASL was asked for (--sasl)")
    for name in ("Metadata", "SaslAuthenticate"):
        line = await target.line(authenticated=False)
        try:
            said = await line.ask(name, target.newest(name), {}, target.end_patience_s)
            refused = _refused(said)
            say.holds(refused, f"{said}, before anything else: {_what(said)}", said)
        finally:
            line.close()


def _refused(said: Said) -> bool:
    """Return whether the connection was closed without a response."""
    return said.answer is None and not said.is_silence


def _what(said: Said) -> str:
    return said.nothing or "was answered"


@probe(
    "P17",
    "A SASL mechanism that there is not is refused with the list of those that there are",
    source="SaslServerAuthenticator.handleHandshakeRequest; SaslHandshakeResponse.json; "
    "KafkaApis.handleSaslHandshakeRequest where the listener has no SASL",
    asks="UNSUPPORTED_SASL_MECHANISM (33) with the mechanisms; ILLEGAL_SASL_STATE (34) where the "
    "listener has no SASL, or it is done.",
    example="SaslHandshake for an unknown mechanism is answered with error 0",
)
async def no_mechanism(probed: Probed, say: LiveSay) -> None:
    """Request an unknown mechanism."""
    target = probed.target
    fields = {"mechanism": _NO_MECHANISM}
    for version in target.versions("SaslHandshake"):
        said = await target.ask("SaslHandshake", fields, version)
        say.error(said, "error_code", "ILLEGAL_SASL_STATE")
        if not target.security.mechanism:
            continue
        line = await target.line(authenticated=False)
        try:
            said = await line.ask("SaslHandshake", version, fields)
            if say.error(said, "error_code", "UNSUPPORTED_SASL_MECHANISM"):
                told = said.at("mechanisms")
                what = f"{said}: mechanisms {told} lack the one that we use"
                say.holds(target.security.mechanism in told, what, said, "mechanisms")
        finally:
            line.close()
