"""V06 and S: SASL authentication, and the lifetime of its session."""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, none_judged
from conform.registry.screened_columns import Bools, ScreenedRows
from dissector.protocol.headers import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE

MARGIN_NS = 1_000_000_000
"""Tolerance for requests after the end of a session."""

_UNSUPPORTED_MECHANISM = 33

_APIS_BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)


def _has_no_login(rows: ScreenedRows) -> Bools:
    """Let the exchanges of connections pass that do not log in by SASL."""
    return ~rows.has_login


_SCREEN = Screen(none_judged, rows=_has_no_login)


class _Login:
    """
    Authentication state of a connection.

    Attributes:
        is_begun: Whether a handshake succeeded.
        has_exchanged_tokens: Whether a step succeeded; the last step can't be distinguished from
            earlier ones.
        failure: The API that was requested too early; its response, an error, must be the last.
    """

    def __init__(self) -> None:
        self.is_begun = self.has_exchanged_tokens = False
        self.failure = ""


@rule(
    "V06",
    "Request that is not allowed during authentication",
    Severity.ERROR,
    source="SaslServerAuthenticator.handleKafkaRequest: IllegalSaslStateException; Kafka 3.9 and "
    "4.3 respond with an error and close the connection",
    asks="Between SaslHandshake and a successful SaslAuthenticate, a connection carries only "
    "ApiVersions, SaslHandshake and SaslAuthenticate; the broker closes it after any other "
    "request.",
    example="SaslHandshake v1, then Metadata",
    screen=_SCREEN,
)
def check_login_comes_first(observation: Observation, reporter: Reporter) -> None:
    """Report other requests during authentication, and responses after one of them."""
    login = observation.connection.state(_Login)
    if not observation.is_complete:
        if observation.api_key == SASL_HANDSHAKE:
            reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if login.failure and observation.exchange.status == "answered":
        found = f"the connection stays open after '{login.failure}' during authentication"
        reporter.report_violation(Side.BROKER, found)
    _update_login(observation, login)
    if not login.is_begun or login.has_exchanged_tokens:
        return
    reporter.count_judged()
    if observation.api_key is not None and observation.api_key not in _APIS_BEFORE_LOGIN:
        login.failure = observation.exchange.api or ""
        reporter.report_violation(
            Side.CLIENT, f"'{login.failure}' is requested before the client is authenticated"
        )


def _update_login(observation: Observation, login: _Login) -> None:
    """Update the authentication state from an exchange."""
    if observation.exchange.is_token:
        login.has_exchanged_tokens = True
    elif observation.response_body is None or observation.response_body.get("error_code"):
        return
    elif observation.api_key == SASL_HANDSHAKE:
        login.is_begun = True
    elif observation.api_key == SASL_AUTHENTICATE:
        login.has_exchanged_tokens = True


@rule(
    "S03",
    "SaslAuthenticate without a SaslHandshake",
    Severity.ERROR,
    source="SaslServerAuthenticator.handleKafkaRequest: SaslHandshake first, else "
    "ILLEGAL_SASL_STATE",
    asks="A successful SaslHandshake precedes SaslAuthenticate; otherwise the broker rejects it.",
    example="SaslAuthenticate as the first request of a connection",
    apis=("SaslHandshake", "SaslAuthenticate"),
)
def check_handshake_comes_first(observation: Observation, reporter: Reporter) -> None:
    """Check that a handshake precedes SaslAuthenticate."""
    handshake = observation.connection.state(_Handshake)
    if not observation.is_complete or observation.connection.is_disordered:
        reporter.count_unjudged(
            observation.connection.incomplete_reason or "packets are out of order"
        )
        return
    response = observation.response_body
    if observation.api_key == SASL_HANDSHAKE:
        handshake.is_done |= response is not None and not response.error_code
        return
    reporter.count_judged()
    if handshake.is_done:
        return
    is_rejected = response is not None and bool(response.error_code)
    severity = Severity.WARNING if is_rejected else None
    reporter.report_violation(Side.CLIENT, "no SaslHandshake precedes it", severity=severity)
    if response is not None and not is_rejected:
        reporter.report_violation(
            Side.BROKER, "the broker accepts a login without a handshake", path="error_code"
        )


class _Handshake:
    """Whether a handshake of a connection succeeded."""

    def __init__(self) -> None:
        self.is_done = False


@rule(
    "S04",
    "Handshake result that contradicts the listed mechanisms",
    Severity.ERROR,
    source="SaslServerAuthenticator.handleHandshakeRequest: UNSUPPORTED_SASL_MECHANISM (33)",
    asks="The broker accepts a mechanism if and only if its response lists it; others it rejects "
    "with UNSUPPORTED_SASL_MECHANISM.",
    example="PLAIN is accepted, and the response lists SCRAM-SHA-256",
    apis=("SaslHandshake",),
)
def check_listed_mechanism_accepted(observation: Observation, reporter: Reporter) -> None:
    """Compare the requested mechanism with the listed ones."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if response.error_code not in (0, _UNSUPPORTED_MECHANISM):
        return
    reporter.count_judged()
    is_listed = request.mechanism in (response.mechanisms or ())
    if is_listed != (not response.error_code):
        result = "rejected" if response.error_code else "accepted"
        listed = ", ".join(response.mechanisms or ())
        found = f"{request.mechanism!r} is {result}, but the response lists {listed!r}"
        reporter.report_violation(Side.BROKER, found, path="error_code")


class _TokenFraming:
    """Version of the last handshake, until a token follows it."""

    def __init__(self) -> None:
        self.handshake_version: int | None = None


@rule(
    "S01",
    "SASL token in the wrong framing",
    Severity.ERROR,
    source="SaslServerAuthenticator: enableKafkaSaslAuthenticateHeaders from SaslHandshake v1 on "
    "(KIP-152)",
    asks="After SaslHandshake v0, tokens are raw: a size and the bytes; from v1 on they are in "
    "SaslAuthenticate requests.",
    example="SaslHandshake v0, then SaslAuthenticate",
    screen=_SCREEN,
)
def check_token_framing(observation: Observation, reporter: Reporter) -> None:
    """Check the framing of the first token after a handshake."""
    framing = observation.connection.state(_TokenFraming)
    if not observation.is_complete:
        if observation.api_key == SASL_HANDSHAKE:
            reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    if (
        observation.api_key == SASL_HANDSHAKE
        and observation.response_body is not None
        and not observation.response_body.error_code
    ):
        framing.handshake_version = observation.version
    elif framing.handshake_version is not None and (
        observation.exchange.is_token or observation.api_key == SASL_AUTHENTICATE
    ):
        reporter.count_judged()
        if observation.exchange.is_token != (framing.handshake_version == 0):
            token = "a raw token" if observation.exchange.is_token else "SaslAuthenticate"
            found = f"{token} follows SaslHandshake v{framing.handshake_version}"
            reporter.report_violation(Side.CLIENT, found)
        framing.handshake_version = None


class _Session:
    """End of the authenticated session of a connection; None if it is unlimited."""

    def __init__(self) -> None:
        self.ends_ns: int | None = None


@rule(
    "S02",
    "Request after the end of the authenticated session",
    Severity.ERROR,
    source="KIP-368: the broker closes connections whose session has expired",
    asks="If the SaslAuthenticate response has a session lifetime, the client re-authenticates on "
    "the same connection before it expires, or sends no more requests.",
    example="session_lifetime_ms 60000, and Fetch 70 seconds later",
    screen=_SCREEN,
)
def check_reauthentication(observation: Observation, reporter: Reporter) -> None:
    """Report requests sent after the end of the session."""
    session = observation.connection.state(_Session)
    exchange = observation.exchange
    if observation.api_key == SASL_AUTHENTICATE:
        response = observation.response_body
        if response is not None and not response.error_code:
            lifetime_ms = response.get("session_lifetime_ms", 0)
            now_ns = exchange.response_time_ns or 0
            session.ends_ns = now_ns + lifetime_ms * 1_000_000 if lifetime_ms > 0 else None
        return
    sent_ns = exchange.request_time_ns
    if session.ends_ns is None or sent_ns is None or observation.api_key in _APIS_BEFORE_LOGIN:
        return
    if not observation.is_complete:
        reporter.count_unjudged(observation.connection.incomplete_reason)
        return
    reporter.count_judged()
    if sent_ns > session.ends_ns + MARGIN_NS:
        late_ms = (sent_ns - session.ends_ns) // 1_000_000
        reporter.report_violation(
            Side.CLIENT, f"'{exchange.api}' is requested {late_ms} ms after the end of the session"
        )
