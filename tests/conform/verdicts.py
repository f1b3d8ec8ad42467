"""A verdict with all kinds of findings, for tests of formats."""

from __future__ import annotations

from conform.registry.rank import Severity
from conform.registry.rule import Rule, Side
from conform.registry.verdict import Finding, Verdict
from conform.rules import REGISTRY

F03, F15, V03 = (REGISTRY[name] for name in ("F03", "F15", "V03"))


def finding(rule: Rule, side: Side, found: str, severity: Severity, **values: object) -> Finding:
    there = {
        "connection": 4,
        "client": "10.0.0.1:50000",
        "broker": "[fd00::1]:9092",
        "packet": 8,
        "correlation_id": 2,
        "api": "Metadata",
        "version": 9,
        "message": "response",
        "capture": "some dir/a.pcap",
    }
    return Finding(rule, severity, side, found, **there | values)


def verdict() -> Verdict:
    """An error found twice, a warning with unsafe text, and a note."""
    out = Verdict([F03, F15, V03])
    for found in (
        finding(F03, Side.BROKER, "request 3 came after 4", Severity.ERROR),
        finding(F03, Side.BROKER, "request 8 came after 9", Severity.ERROR, packet=13),
        finding(
            V03,
            Side.CLIENT,
            "the name is '<b>\x1b&'",
            Severity.WARNING,
            path="client_software_name",
            span=(3, 9),
            software="shop 1.2",
            message="request",
        ),
    ):
        add(out, found)
    out.tallies["F03"].judged = 10
    out.tallies["V03"].judged = 1
    out.tallies["F15"].unjudged["the capture begins in the middle of the connection"] = 1234
    return out


def add(out: Verdict, found: Finding) -> None:
    kind = out.kind(found.key)
    out.tallies[found.rule.id].broken += 1
    if kind is not None:
        kind.findings.append(found)


def verdict_of_one_cause() -> Verdict:
    """Two rules broken by a closed connection: once, and twice."""
    out = Verdict([F03, V03])
    cause = {"cause": "the broker closes the connection", "connection": None, "packet": None}
    cause |= {"capture": ""}
    add(out, finding(F03, Side.BROKER, "closed the connection", Severity.ERROR, **cause))
    for _ in range(2):
        add(out, finding(V03, Side.BROKER, "closed the connection", Severity.ERROR, **cause))
    return out
