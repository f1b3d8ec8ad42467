"""The reporter with which a probe records its results."""

from __future__ import annotations

from conform.evidence.observation import span_of
from conform.probe.raw_exchange import RawExchange
from conform.registry.rank import Severity
from conform.registry.rule import Rule, Side
from conform.registry.verdict import Finding, Verdict, finding_key
from dissector.protocol.error_codes import error_code, error_name

_SHOWN_BYTES = 24


class ProbeReporter:
    """Records the results of one probe of one broker."""

    def __init__(self, rule: Rule, verdict: Verdict, broker: str, software: str = "") -> None:
        """
        Create the reporter.

        Args:
            rule: The rule of the probe.
            verdict: Receives the results.
            broker: `host:port`.
            software: The broker's release, as far as the versions that it offers reveal it.
        """
        self._rule = rule
        self._verdict = verdict
        self._tally = verdict.tallies[rule.id]
        self._broker = broker
        self._software = software

    def judged(self) -> None:
        """Count one case that could be judged, whatever the result."""
        self._tally.judged += 1

    def unjudged(self, why: str) -> None:
        """Count one case that could not be judged."""
        self._tally.unjudged[why] += 1

    def broken(
        self,
        found: str,
        said: RawExchange | None = None,
        path: str = "",
        severity: Severity | None = None,
        request: bytes = b"",
        cause: str = "",
    ) -> None:
        """
        Record a violation of the rule; only `judged` counts the case as judged.

        Args:
            found: What was found, in a line.
            said: The exchange that shows it.
            path: The field of the response.
            severity: Where it differs from the rule's.
            request: The bytes sent, where there is no exchange.
            cause: A possible cause of other findings too; by default that there is no response.
        """
        self._tally.broken += 1
        api = said.api if said else ""
        key = finding_key(self._rule, Side.BROKER, self._software, api, path, found)
        kind = self._verdict.kind(key, said.version if said else None)
        if kind is None:
            return
        message = said.response if said else None
        kind.findings.append(
            Finding(
                self._rule,
                severity or self._rule.severity,
                Side.BROKER,
                found,
                self._software,
                broker=self._broker,
                correlation_id=said.correlation_id if said else None,
                api=api,
                version=said.version if said else None,
                message="response" if message else "",
                path=path,
                span=span_of(message, path) if message and path else None,
                cause=cause or _cause(said),
                request=said.request if said else request,
            )
        )

    def broker_lost(self, why: str, request: bytes, what: str) -> None:
        """Record that the broker no longer serves anyone, and since which request."""
        self.judged()
        found = f"the broker went away when it was sent {what}: {why}"
        cause = f"the broker goes away when it is sent {what}"
        self.broken(found, severity=Severity.ERROR, request=request, cause=cause)

    def unanswered(self, said: RawExchange) -> None:
        """Record that a request got no response, on which the rest of the rule depends."""
        self.judged()
        self.broken(f"{said}: {said.failure}", said, severity=Severity.ERROR)

    def failed(self, error: Exception) -> None:
        """Record that the rule itself raised an exception."""
        self._verdict.fault(self._rule.id, error, self._broker)

    def check(
        self,
        is_right: bool,
        found: str,
        said: RawExchange | None = None,
        path: str = "",
        severity: Severity | None = None,
        request: bytes = b"",
    ) -> bool:
        """Judge one case: whether a condition holds, and what was found otherwise."""
        self.judged()
        if not is_right:
            self.broken(found, said, path, severity, request)
        return is_right

    def check_readable(self, said: RawExchange) -> bool:
        """Return whether there is a readable response; if there is none, the rule is broken."""
        if said.body is not None:
            return True
        self.judged()
        if said.response is None:
            self.broken(f"{said}: {said.failure}", said)
        else:
            what = f"can't be read: {said.response.problems[0]}"
            self.broken(f"{said}: the answer {response_prefix(said)} {what}", said)
        return False

    def check_error(
        self, said: RawExchange, path: str, *names: str, severity: Severity | None = None
    ) -> bool:
        """Judge one case: whether a response has one of these errors (also `NONE`) at a path."""
        if not self.check_readable(said):
            return False
        code = said.field(path)
        if code is None:
            return self.check(False, f"{said}: there is no {path} in the answer", said)
        wanted = " or ".join(names)
        found = f"{said}: answered {error_name(code)} ({code}), not {wanted}"
        fine = code in {error_code(name) for name in names}
        return self.check(fine, found, said, path, severity)


def _cause(said: RawExchange | None) -> str:
    """Return the common cause of findings without a response; empty for other findings."""
    if said is None or not said.failure:
        return ""
    return "the broker does not answer" if said.is_timeout else "the broker closes the connection"


def response_prefix(said: RawExchange) -> str:
    """Return the first bytes of a response, quoted because they vary from run to run."""
    return bytes_text(said.response.frame if said.response else b"")


def bytes_text(frame: bytes) -> str:
    """Return the first bytes of a frame as text."""
    dots = " ..." if len(frame) > _SHOWN_BYTES else ""
    return f"'{frame[:_SHOWN_BYTES].hex(' ')}{dots}'"
