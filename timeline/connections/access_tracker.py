"""
Access: logins, refused logins, and operations denied to a client.

A login is over with the last message of its mechanism, or when the next request is answered.

Source: KIP-43 and KIP-152 (SASL), KIP-368 (re-authentication), KIP-11 (authorization).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from dissector.protocol.embedded.sasl_tokens import decode_token
from timeline.connections.login_rounds import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Result,
    refusal_of,
    round_result,
)
from timeline.events.closes import Close
from timeline.events.denials import DENIALS, denials
from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.words import counted, duration, listed
from timeline.trackers.tracker import Tracker, keep_proof
from timeline.trackers.transaction_state import client_of

MAX_USERS = 100_000
"""Maximum number of connections with a retained user."""


@dataclass(slots=True)
class Login:
    """
    A login in progress.

    Attributes:
        subject: Client and broker.
        broker: `address:port` of the broker.
        mechanism: From the handshake, or from the first token; empty if unknown.
        time_ns: Begin.
        end_ns: Time of the last answer.
        rounds: Number of tokens of the client.
        is_answered: Whether the last of them was answered.
        result: Meaning of the last answer.
        refusal: Error in an answer that refuses the login.
        proof: Exchanges.
    """

    subject: str = ""
    broker: str = ""
    mechanism: str = ""
    time_ns: int = 0
    end_ns: int = 0
    rounds: int = 0
    is_answered: bool = True
    result: Result = Result.MORE
    refusal: str = ""
    proof: list[Evidence] = field(default_factory=list)


class Access(Tracker):
    """Follows logins by connection; the subject of events is a client at a broker."""

    kind: ClassVar[str] = "connection"
    errors: ClassVar[frozenset[str]] = DENIALS
    follows_logins: ClassVar[bool] = True
    sees_closes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._logins: States[int, Login] = States(Fresh(Login))
        self._users: States[int, str] = States(Fresh(str), MAX_USERS)

    def open_logins(self) -> frozenset[int]:
        """Return the connections with a login in progress."""
        return frozenset(self._logins)

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange of a login, the one after it, or one with a denial."""
        if observed.api_key == SASL_HANDSHAKE:
            yield from self._handshake(observed)
        elif observed.api_key == SASL_AUTHENTICATE or observed.api == "SaslToken":
            yield from self._round(observed)
        else:
            yield from self._next_request(observed)
            yield from self._denied(observed)

    def observe_close(self, close: Close) -> Iterator[Event]:
        """Report a login that the end of its connection left unfinished."""
        login = self._logins.pop(close.connection, None)
        if login is None or not login.rounds:
            return
        if login.result is Result.UNKNOWN and login.is_answered:
            return  # it may have succeeded
        if login.refusal:
            yield self._refused(close.connection, login, close.time_ns)
            return
        text = (
            f"{login.mechanism or 'SASL'} on connection {close.connection}: the {close.closer} "
            f"closed it after {counted(login.rounds, 'round')}, before the login was over"
        )
        yield self._event(login, "login failed", text, close.time_ns, close.closer)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report refused logins whose connection is open at the end of the capture."""
        for number, login in self._logins.items():
            if login.refusal:
                yield self._refused(number, login, login.end_ns)
        self._logins.clear()

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest login in progress."""
        return min((each.time_ns for each in self._logins.values() if each.rounds), default=None)

    def _login(self, observed: ObservedExchange) -> Login:
        """Return the login of a connection, with one more exchange."""
        login = self._logins.use(observed.connection)
        if not login.proof:
            login.time_ns, login.broker = observed.time_ns, observed.broker
            login.subject = f"{client_of(observed)} to {observed.broker}"
        keep_proof(login.proof, observed.evidence)
        return login

    def _handshake(self, observed: ObservedExchange) -> Iterator[Event]:
        if observed.request is None or observed.response is None:
            return
        login = self._login(observed)
        login.mechanism, login.end_ns = observed.request.mechanism or "", observed.end_ns
        if not observed.error:
            return
        offered = listed(observed.response.mechanisms or ())
        text = f"the broker refuses {login.mechanism}, and offers {offered or 'nothing'}"
        yield self._event(login, "login failed", text, observed.end_ns, observed.error)
        del self._logins[observed.connection]

    def _round(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process a token of the client, and its answer."""
        number, login = observed.connection, self._login(observed)
        login.rounds += 1
        token = decode_token(_token(observed, "request"), login.mechanism or None)
        login.mechanism = login.mechanism or token.mechanism or ""
        if token.user:
            self._users.put(number, token.user)
        login.is_answered = observed.status == "answered"
        if not login.is_answered:
            return
        login.end_ns = observed.end_ns
        if observed.error:
            if login.refusal:
                yield self._refused(number, login, observed.end_ns, observed.error)
            else:
                text = f"{login.mechanism or 'SASL'} on connection {number}: {observed.error}"
                yield self._event(login, "login failed", text, login.end_ns, observed.error)
            del self._logins[number]
            return
        answer = _token(observed, "response")
        response = observed.response
        lifetime_ms = 0 if response is None else response.get("session_lifetime_ms") or 0
        login.result = round_result(login.mechanism, answer, lifetime_ms)
        if login.result is Result.DONE:
            yield self._logged_in(number, login, lifetime_ms)
        elif login.result is Result.REFUSED:
            login.refusal = refusal_of(login.mechanism, answer)

    def _next_request(self, observed: ObservedExchange) -> Iterator[Event]:
        """End a login: brokers answer other requests after it only."""
        login = self._logins.get(observed.connection)
        is_after = login is not None and observed.time_ns >= login.end_ns
        if login is None or not is_after or not login.rounds:
            return
        if observed.status == "answered" and not login.refusal:
            keep_proof(login.proof, observed.evidence)
            yield self._logged_in(observed.connection, login, 0)

    def _logged_in(self, number: int, login: Login, lifetime_ms: int) -> Event:
        text = f"{login.mechanism or 'SASL'} on connection {number}"
        text += f", for {duration(lifetime_ms * 1_000_000)}" if lifetime_ms else ""
        del self._logins[number]
        return self._event(login, "logged in", text, login.end_ns)

    def _refused(self, number: int, login: Login, end_ns: int, error: str = "") -> Event:
        """Return the refusal in an answer without an error, and what followed."""
        after = f"then {error}" if error else "the client gave up"
        text = f"{login.mechanism} on connection {number}: refused with {login.refusal}, {after}"
        return self._event(login, "login failed", text, end_ns, error or login.refusal)

    def _event(self, login: Login, event: str, text: str, end_ns: int, cause: str = "") -> Event:
        return self.event(
            login.subject,
            event,
            text,
            time_ns=login.time_ns,
            end_ns=max(end_ns, login.time_ns),
            proof=login.proof,
            brokers=[login.broker],
            cause=cause,
            repeats=login.mechanism,
        )

    def _denied(self, observed: ObservedExchange) -> Iterator[Event]:
        """Report operations that the broker denied."""
        if observed.response is None:
            return
        user = self._users.get(observed.connection)
        whom = f" to User:{user}" if user else ""
        for error, resource in denials(observed):
            what = f"{observed.api}: {resource}"
            yield self.instant(
                observed,
                f"{client_of(observed)} to {observed.broker}",
                "denied",
                f"{what} denied{whom}",
                cause=error,
                repeats=f"{what}{whom}",
            )


def _token(observed: ObservedExchange, side: str) -> bytes:
    """Return the token in a request or a response; empty if there is none."""
    if observed.api_key != SASL_AUTHENTICATE:
        message = getattr(observed.exchange, side)
        return b"" if message is None else bytes(message.frame)
    body = getattr(observed, side)
    return b"" if body is None else bytes(body.auth_bytes or b"")
