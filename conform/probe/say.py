"""How a probe says what it found."""

from __future__ import annotations

from conform.probe.said import Said
from conform.rule import Rule, Severity, Side
from conform.turn import span_of
from conform.verdict import Finding, Verdict, finding_key
from dissector.protocol.error_codes import error_code, error_name

_SHOWN_BYTES = 24


class LiveSay:
    """Takes what one probe says of one broker."""

    def __init__(self, rule: Rule, verdict: Verdict, broker: str, software: str = "") -> None:
        """
        Begin to take it.

        Args:
            rule: Whose probe it is.
            verdict: Where it goes.
            broker: `host:port`.
            software: What the broker is, as far as the versions that it offers tell.
        """
        self._rule = rule
        self._verdict = verdict
        self._tally = verdict.tallies[rule.id]
        self._broker = broker
        self._software = software

    def judged(self) -> None:
        """Count one case that could be judged, whatever came of it."""
        self._tally.judged += 1

    def unjudged(self, why: str) -> None:
        """Count one case that could not be judged."""
        self._tally.unjudged[why] += 1

    def broken(
        self,
        found: str,
        said: Said | None = None,
        path: str = "",
        severity: Severity | None = None,
        request: bytes = b"",
        cause: str = "",
    ) -> None:
        """
        Say that the broker broke the rule; the case counts as judged by `judged` alone.

        Args:
            found: What was found, in a line.
            said: The exchange that shows it.
            path: The field of the answer.
            severity: Where it is not the rule's.
            request: What was sent, where that is no exchange.
            cause: What other findings may come from too; by default that no answer came.
        """
        self._tally.broken += 1
        api = said.api if said else ""
        key = finding_key(self._rule, Side.BROKER, self._software, api, path, found)
        kind = self._verdict.kind(key, said.version if said else None)
        if kind is None:
            return
        message = said.answer if said else None
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

    def went_away(self, why: str, request: bytes, what: str) -> None:
        """Say that the broker serves nobody any more, and since what."""
        self.judged()
        found = f"the broker went away when it was sent {what}: {why}"
        cause = f"the broker goes away when it is sent {what}"
        self.broken(found, severity=Severity.ERROR, request=request, cause=cause)

    def unanswered(self, said: Said) -> None:
        """Say that a request was not answered on which the rest of the rule depends."""
        self.judged()
        self.broken(f"{said}: {said.nothing}", said, severity=Severity.ERROR)

    def failed(self, error: Exception) -> None:
        """Note that the rule itself failed."""
        self._verdict.fault(self._rule.id, error, self._broker)

    def holds(
        self,
        holds: bool,
        found: str,
        said: Said | None = None,
        path: str = "",
        severity: Severity | None = None,
        request: bytes = b"",
    ) -> bool:
        """Judge one case: whether something holds, and else what was found instead."""
        self.judged()
        if not holds:
            self.broken(found, said, path, severity, request)
        return holds

    def answers(self, said: Said) -> bool:
        """Return whether there is an answer to look at; that there is none breaks the rule."""
        if said.body is not None:
            return True
        self.judged()
        if said.answer is None:
            self.broken(f"{said}: {said.nothing}", said)
        else:
            what = f"can't be read: {said.answer.problems[0]}"
            self.broken(f"{said}: the answer {start_of(said)} {what}", said)
        return False

    def error(self, said: Said, path: str, *names: str, severity: Severity | None = None) -> bool:
        """Judge one case: whether an answer has one of these errors (`NONE` is one) at a path."""
        if not self.answers(said):
            return False
        code = said.at(path)
        if code is None:
            return self.holds(False, f"{said}: there is no {path} in the answer", said)
        wanted = " or ".join(names)
        found = f"{said}: answered {error_name(code)} ({code}), not {wanted}"
        fine = code in {error_code(name) for name in names}
        return self.holds(fine, found, said, path, severity)


def _cause(said: Said | None) -> str:
    """Return what other findings may have in common with one: that no answer came."""
    if said is None or not said.nothing:
        return ""
    return "the broker does not answer" if said.is_silence else "the broker closes the connection"


def start_of(said: Said) -> str:
    """Show the first bytes of an answer, quoted as what varies from run to run."""
    return bytes_text(said.answer.frame if said.answer else b"")


def bytes_text(frame: bytes) -> str:
    """Show the first bytes of a frame."""
    dots = " ..." if len(frame) > _SHOWN_BYTES else ""
    return f"'{frame[:_SHOWN_BYTES].hex(' ')}{dots}'"
