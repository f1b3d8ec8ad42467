"""The reporter with which a probe records its results."""

from __future__ import annotations

from conform.probe.raw_exchange import RawExchange
from conform.registry.field_range import span_of
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
            software: Release of the broker, derived from the versions it offers.
        """
        self._rule = rule
        self._verdict = verdict
        self._tally = verdict.tallies[rule.id]
        self._broker = broker
        self._software = software

    def count_judged(self) -> None:
        """Count one case that could be judged, whatever the result."""
        self._tally.judged += 1

    def count_unjudged(self, reason: str) -> None:
        """Count one case that could not be judged."""
        self._tally.unjudged[reason] += 1

    def report_violation(
        self,
        found: str,
        exchange: RawExchange | None = None,
        path: str = "",
        severity: Severity | None = None,
        request: bytes = b"",
        cause: str = "",
    ) -> None:
        """
        Record a violation of the rule; only `count_judged` counts the case as judged.

        Args:
            found: The finding in one line.
            exchange: The exchange that shows it.
            path: The field of the response.
            severity: Severity, if it differs from that of the rule.
            request: The bytes sent, without an exchange.
            cause: A possible cause of other findings too; by default the missing response.
        """
        self._tally.broken += 1
        api = exchange.api if exchange else ""
        key = finding_key(self._rule, Side.BROKER, self._software, api, path, found)
        kind = self._verdict.kind(key, exchange.version if exchange else None)
        if kind is None:
            return
        message = exchange.response if exchange else None
        kind.findings.append(
            Finding(
                self._rule,
                severity or self._rule.severity,
                Side.BROKER,
                found,
                self._software,
                broker=self._broker,
                correlation_id=exchange.correlation_id if exchange else None,
                api=api,
                version=exchange.version if exchange else None,
                message="response" if message else "",
                path=path,
                span=span_of(message, path) if message and path else None,
                cause=cause or _cause(exchange),
                request=exchange.request if exchange else request,
            )
        )

    def report_broker_lost(self, reason: str, request: bytes, description: str) -> None:
        """Record a lost broker, and the last request before."""
        self.count_judged()
        found = f"the broker went away when it was sent {description}: {reason}"
        cause = f"the broker goes away when it is sent {description}"
        self.report_violation(found, severity=Severity.ERROR, request=request, cause=cause)

    def report_no_response(self, exchange: RawExchange) -> None:
        """Record a missing response, which the rest of the rule needs."""
        self.count_judged()
        self.report_violation(f"{exchange}: {exchange.failure}", exchange, severity=Severity.ERROR)

    def record_exception(self, error: Exception) -> None:
        """Record that the rule itself raised an exception."""
        self._verdict.fault(self._rule.id, error, self._broker)

    def check(
        self,
        is_right: bool,
        found: str,
        exchange: RawExchange | None = None,
        path: str = "",
        severity: Severity | None = None,
        request: bytes = b"",
    ) -> bool:
        """Judge one case: record a violation unless a condition is met."""
        self.count_judged()
        if not is_right:
            self.report_violation(found, exchange, path, severity, request)
        return is_right

    def check_readable(self, exchange: RawExchange) -> bool:
        """Return whether there is a readable response; a missing response is a violation."""
        if exchange.body is not None:
            return True
        self.count_judged()
        if exchange.response is None:
            self.report_violation(f"{exchange}: {exchange.failure}", exchange)
        else:
            found = f"the response {response_prefix(exchange)} can't be read: "
            self.report_violation(f"{exchange}: {found}{exchange.response.problems[0]}", exchange)
        return False

    def check_error(
        self, exchange: RawExchange, path: str, *names: str, severity: Severity | None = None
    ) -> bool:
        """Judge one case: whether a response has one of these errors (also `NONE`) at a path."""
        if not self.check_readable(exchange):
            return False
        code = exchange.field(path)
        if code is None:
            return self.check(False, f"{exchange}: the response has no {path}", exchange)
        expected = " or ".join(names)
        found = f"{exchange}: answered {error_name(code)} ({code}), not {expected}"
        is_expected = code in {error_code(name) for name in names}
        return self.check(is_expected, found, exchange, path, severity)


def _cause(exchange: RawExchange | None) -> str:
    """Return the common cause of findings without a response; empty for other findings."""
    if exchange is None or not exchange.failure:
        return ""
    return (
        "the broker does not answer" if exchange.is_timeout else "the broker closes the connection"
    )


def response_prefix(exchange: RawExchange) -> str:
    """Return the first bytes of a response, quoted because they vary from run to run."""
    return bytes_text(exchange.response.frame if exchange.response else b"")


def bytes_text(frame: bytes) -> str:
    """Return the first bytes of a frame as text."""
    dots = " ..." if len(frame) > _SHOWN_BYTES else ""
    return f"'{frame[:_SHOWN_BYTES].hex(' ')}{dots}'"
