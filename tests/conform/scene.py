"""
Scenes for tests of rules: connections, their traffic, and the verdict.

    scene = Scene()
    connection = scene.connect()
    connection.request(METADATA, 9, 1, topics=None)   # missing fields are zero
    connection.response(METADATA, 9, 1, brokers=[...])
    connection.client(frame)                          # or bytes, with size prefix
    found = scene.judge()                             # Verdict
    assert broken(found) == ["F03"]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from conform.judge import Judge
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from conform.registry.verdict import Finding, Verdict
from conform.rule_budgets import RuleBudget
from conform.rules import REGISTRY
from dissector import Exchange, open_capture
from tests import tcp_captures
from tests.dissector.cli.cli_traffic import request_frame, response_frame

API_VERSIONS = 18

MEASURED = RuleBudget(bytes_between=1)
"""The budget of rules, with the memory of their states measured after each window."""


class Scene:
    """
    A captured conversation.

    Attributes:
        wire: The packets so far; `wire.now_ns` is the time of the next.
    """

    def __init__(self) -> None:
        self.wire = tcp_captures.Wire()
        self._ports = 50000

    def connect(self, *, syn: bool = True, broker: str = "10.0.0.2") -> SceneConnection:
        """Begin a connection; without `syn` as if the capture began in its middle."""
        self._ports += 1
        connection = self.wire.connect(self._ports, hosts=("10.0.0.1", broker))
        return SceneConnection(self, connection.syn() if syn else connection)

    def wait_ms(self, milliseconds: int) -> None:
        """Advance the time."""
        self.wire.now_ns += milliseconds * 1_000_000

    def lose(self, *numbers: int) -> None:
        """Lose packets with payload, by their number among those; -1 is the newest."""
        loaded = [packet for packet in self.wire.packets if packet.payload]
        lost = [id(loaded[number]) for number in numbers]
        self.wire.packets = [each for each in self.wire.packets if id(each) not in lost]

    def cut(self, number: int, kept: int) -> None:
        """Truncate a packet with payload to `kept` bytes of payload."""
        loaded = [packet for packet in self.wire.packets if packet.payload]
        chosen = loaded[number]
        at = next(i for i, each in enumerate(self.wire.packets) if each is chosen)
        self.wire.packets[at] = chosen.cut(tcp_captures.HEADERS_BYTES + kept)

    def exchanges(self) -> list[Exchange]:
        """Return the exchanges of a capture of the scene."""
        with tempfile.TemporaryDirectory() as folder:
            path = tcp_captures.write(Path(folder) / "scene.pcap", self.wire.packets)
            return list(open_capture(path))

    def judge(self, rules: Iterable[Rule] | None = None) -> Verdict:
        """Write a capture and judge it, by default by all rules; none of these may fail."""
        with tempfile.TemporaryDirectory() as folder:
            path = tcp_captures.write(Path(folder) / "scene.pcap", self.wire.packets)
            verdict = Judge(rules or capture_rules(), MEASURED).judge_capture(open_capture(path))
        assert rules or not verdict.faults
        return verdict


class SceneConnection:
    """One connection of a scene."""

    def __init__(self, scene: Scene, connection: tcp_captures.WireConnection) -> None:
        self.scene = scene
        self._connection = connection

    def client(self, *frames: bytes) -> SceneConnection:
        """Send from the client, one packet for each part."""
        self._connection.client(*frames)
        return self

    def broker(self, *frames: bytes) -> SceneConnection:
        """Send from the broker, one packet for each part."""
        self._connection.broker(*frames)
        return self

    def request(
        self, key: int, version: int, correlation_id: int, /, **values: Any
    ) -> SceneConnection:
        """Send a request; missing fields are zero, at every depth."""
        return self.client(request_frame(key, version, correlation_id, **values))

    def response(
        self, key: int, version: int, correlation_id: int, /, **values: Any
    ) -> SceneConnection:
        """Send a response; missing fields are zero."""
        return self.broker(response_frame(key, version, correlation_id, **values))

    def fin(self) -> SceneConnection:
        """Close from both sides."""
        self._connection.fin()
        return self

    def rst(self, side: int = 0) -> SceneConnection:
        """Reset, from the client (0) or the broker (1)."""
        self._connection.rst(side)
        return self


SceneExchange = tuple[int, int, dict[str, Any], dict[str, Any]]
"""An exchange: key, version, fields of the request, fields of the response."""


def scene_of(*exchanges: SceneExchange, scene: Scene | None = None) -> Scene:
    """Return a scene with consecutive exchanges on one connection."""
    scene = scene or Scene()
    connection = scene.connect()
    for number, (key, version, request, response) in enumerate(exchanges, start=1):
        connection.request(key, version, number, **request).response(
            key, version, number, **response
        )
    return scene


def capture_rules() -> list[Rule]:
    """Return the rules for captures."""
    return [rule for rule in REGISTRY.values() if rule.on != "live"]


def findings(verdict: Verdict) -> Iterator[Finding]:
    """Yield the findings kept in full."""
    for kind in verdict:
        yield from kind.findings


def broken(verdict: Verdict, *notes: str) -> list[str]:
    """
    Return the ids of broken rules, each once, in order.

    Notes are included only for rules in `notes`: short scenes break many of them.
    """
    ids = [
        finding.rule.id
        for finding in findings(verdict)
        if finding.severity is not Severity.NOTE or finding.rule.id in notes
    ]
    return list(dict.fromkeys(ids))


Case = Callable[[], Scene]

RuleCase = tuple[Case, tuple[str, ...]]
"""A scene, and the other rules that it breaks."""

BREAKS: dict[str, list[RuleCase]] = {}
KEEPS: dict[str, list[RuleCase]] = {}
"""By id of the rule the cases of all files under `rules/`, as they are imported."""


def breaks(rule: str, *also: str) -> Callable[[Case], Case]:
    """Mark a function whose scene breaks exactly a rule and these others."""

    def mark(case: Case) -> Case:
        BREAKS.setdefault(rule, []).append((case, also))
        return case

    return mark


def keeps(rule: str, *also: str) -> Callable[[Case], Case]:
    """Mark a function whose scene keeps a rule and breaks at most these others."""

    def mark(case: Case) -> Case:
        KEEPS.setdefault(rule, []).append((case, also))
        return case

    return mark
