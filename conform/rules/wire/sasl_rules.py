"""V06 and S: authentication, and the lifetime of its session."""

from __future__ import annotations

from conform.evidence.observation import Turn
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.headers import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE

MARGIN_NS = 1_000_000_000
"""Tolerance for requests after the end of a session."""

_UNSUPPORTED_MECHANISM = 33

_BEFORE_LOGIN = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)


class _Login:
    """
    Authentication state of a connection.

    Attributes:
        begun: Whether a handshake succeeded.
        stepped: Whether a step succeeded: the last step can't be distinguished from earlier ones.
        refused: API requested too early; its response, an error, must be the last.
    """

    def __init__(self) -> None:
        self.begun = self.stepped = False
        self.refused = ""


@rule(
    "V06",
    "Before the login only ApiVersions and the login itself are asked",
    Severity.ERROR,
    source="SaslServerAuthenticator.handleKafkaRequest: IllegalSaslStateException; Kafka 3.9 and "
    "4.3 answer with an error and close the connection",
    asks="Between SaslHandshake and a SaslAuthenticate that succeeds, a connection carries only "
    "ApiVersions, SaslHandshake and SaslAuthenticate; anything else is its end.",
    example="SaslHandshake v1, then Metadata",
)
def logs_in_first(turn: Turn, say: Say) -> None:
    """Report other requests during authentication, and responses after one of them."""
    login = turn.talk.state(_Login)
    if not turn.whole:
        if turn.api_key == SASL_HANDSHAKE:
            say.unjudged(turn.talk.partial)
        return
    if login.refused and turn.exchange.status == "answered":
        what = f"the connection goes on after '{login.refused}', asked before the client logged in"
        say.broken(Side.BROKER, what)
    _follow(turn, login)
    if not login.begun or login.stepped:
        return
    say.judged()
    if turn.api_key is not None and turn.api_key not in _BEFORE_LOGIN:
        login.refused = turn.exchange.api or ""
        say.broken(Side.CLIENT, f"'{login.refused}' is asked before the client is logged in")


def _follow(turn: Turn, login: _Login) -> None:
    """Update the authentication state."""
    if turn.exchange.is_token:
        login.stepped = True
    elif turn.told is None or turn.told.get("error_code"):
        return
    elif turn.api_key == SASL_HANDSHAKE:
        login.begun = True
    elif turn.api_key == SASL_AUTHENTICATE:
        login.stepped = True


@rule(
    "S03",
    "A login must begin with a handshake",
    Severity.ERROR,
    source="SaslServerAuthenticator.handleKafkaRequest: SaslHandshake first, else "
    "ILLEGAL_SASL_STATE",
    asks="SaslAuthenticate comes behind a SaslHandshake that was answered without an error; a "
    "broker refuses it otherwise.",
    example="SaslAuthenticate as the first request of a connection",
    apis=("SaslHandshake", "SaslAuthenticate"),
)
def shakes_hands_first(turn: Turn, say: Say) -> None:
    """Check that a handshake precedes SaslAuthenticate."""
    login = turn.talk.state(_Handshake)
    if not turn.whole or turn.talk.is_disordered:
        say.unjudged(turn.talk.partial or "packets are out of order")
        return
    told = turn.told
    if turn.api_key == SASL_HANDSHAKE:
        login.done |= told is not None and not told.error_code
        return
    say.judged()
    if login.done:
        return
    is_refused = told is not None and bool(told.error_code)
    severity = Severity.WARNING if is_refused else None
    say.broken(Side.CLIENT, "there was no handshake before", severity=severity)
    if told is not None and not is_refused:
        say.broken(Side.BROKER, "a login without a handshake goes on", path="error_code")


class _Handshake:
    """Whether a handshake of a connection succeeded."""

    def __init__(self) -> None:
        self.done = False


@rule(
    "S04",
    "A handshake must take the mechanisms that it lists, and no other",
    Severity.ERROR,
    source="SaslServerAuthenticator.handleHandshakeRequest: UNSUPPORTED_SASL_MECHANISM (33)",
    asks="A mechanism is taken without an error if the answer lists it, and refused with "
    "UNSUPPORTED_SASL_MECHANISM only if it does not.",
    example="PLAIN is taken, the answer lists SCRAM-SHA-256",
    apis=("SaslHandshake",),
)
def takes_what_it_lists(turn: Turn, say: Say) -> None:
    """Compare the requested mechanism with the listed ones."""
    asked, told = turn.asked, turn.told
    if asked is None or told is None:
        say.unjudged(turn.lacks())
        return
    if told.error_code not in (0, _UNSUPPORTED_MECHANISM):
        return
    say.judged()
    is_listed = asked.mechanism in (told.mechanisms or ())
    if is_listed != (not told.error_code):
        did = "refused" if told.error_code else "taken"
        found = f"{asked.mechanism!r} is {did}, {', '.join(told.mechanisms or ())!r} are listed"
        say.broken(Side.BROKER, found, path="error_code")


class _Form:
    """Version of a handshake not yet followed by a token."""

    def __init__(self) -> None:
        self.version: int | None = None


@rule(
    "S01",
    "The tokens of a login are sent as the handshake's version says",
    Severity.ERROR,
    source="SaslServerAuthenticator: enableKafkaSaslAuthenticateHeaders from SaslHandshake v1 on "
    "(KIP-152)",
    asks="After SaslHandshake v0 tokens are raw: a size and the bytes; from v1 on they are in "
    "SaslAuthenticate requests.",
    example="SaslHandshake v0, then SaslAuthenticate",
)
def tokens_as_agreed(turn: Turn, say: Say) -> None:
    """Check the form of the first token after a handshake."""
    form = turn.talk.state(_Form)
    if not turn.whole:
        if turn.api_key == SASL_HANDSHAKE:
            say.unjudged(turn.talk.partial)
        return
    if turn.api_key == SASL_HANDSHAKE and turn.told is not None and not turn.told.error_code:
        form.version = turn.version
    elif form.version is not None and (turn.exchange.is_token or turn.api_key == SASL_AUTHENTICATE):
        say.judged()
        if turn.exchange.is_token != (form.version == 0):
            form_of_token = "a raw token" if turn.exchange.is_token else "SaslAuthenticate"
            say.broken(Side.CLIENT, f"{form_of_token} follows SaslHandshake v{form.version}")
        form.version = None


class _Session:
    """End of a connection's session, from the broker's response; None: unlimited."""

    def __init__(self) -> None:
        self.ends_ns: int | None = None


@rule(
    "S02",
    "A client logs in again before its session ends",
    Severity.ERROR,
    source="KIP-368: the broker closes connections whose session has ended",
    asks="Where SaslAuthenticate tells a session lifetime, the client authenticates again on the "
    "same connection before that is over, or asks nothing more.",
    example="session_lifetime_ms 60000, and Fetch 70 seconds later",
)
def logs_in_again(turn: Turn, say: Say) -> None:
    """Report requests sent after the end of the session."""
    session = turn.talk.state(_Session)
    exchange = turn.exchange
    if turn.api_key == SASL_AUTHENTICATE:
        told = turn.told
        if told is not None and not told.error_code:
            lifetime_ms = told.get("session_lifetime_ms", 0)
            now_ns = exchange.response_time_ns or 0
            session.ends_ns = now_ns + lifetime_ms * 1_000_000 if lifetime_ms > 0 else None
        return
    sent_ns = exchange.request_time_ns
    if session.ends_ns is None or sent_ns is None or turn.api_key in _BEFORE_LOGIN:
        return
    if not turn.whole:
        say.unjudged(turn.talk.partial)
        return
    say.judged()
    if sent_ns > session.ends_ns + MARGIN_NS:
        late_ms = (sent_ns - session.ends_ns) // 1_000_000
        say.broken(Side.CLIENT, f"'{exchange.api}' is asked {late_ms} ms after the session's end")
