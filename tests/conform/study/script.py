"""
A capture of the corpus as a script: the frames of its exchanges, replayed with one fault.

A fault is a change of one message, or of the order of frames. The changed capture is written and
judged; the fault is found if there is a finding about its side, absent without the fault.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from conform.judge import Judge
from conform.registry.rank import Severity
from conform.registry.rule import Side
from conform.registry.verdict import Finding, Verdict
from dissector import open_capture
from dissector.protocol.messages import Message
from tests import tcp_captures
from tests.conform.mutations import key_of
from tests.conform.scene import capture_rules
from tests.default_frames import sized

CORPUS = Path(__file__).parents[3] / "captures"


@dataclass(frozen=True)
class ScriptFrame:
    """One frame: connection, exchange, side, time, and start of the body."""

    connection: int
    exchange: int
    side: Side
    time_ns: int
    packet: int
    frame: bytes
    message: Message
    api: str
    answered: bool = True

    @property
    def version(self) -> int:
        return self.message.api_version or 0

    @property
    def body(self) -> Any:
        return self.message.body

    def with_body(self, body: Any) -> ScriptFrame:
        assert self.message.schema is not None
        data = self.message.schema.codec(self.version).build(body)
        return replace(self, frame=self.frame[: self.message.body_start] + data)


class Script(NamedTuple):
    """Frames in the order of their packets, and the addresses of each connection."""

    frames: list[ScriptFrame]
    addresses: dict[int, tuple[str, str]]

    def partner(self, of: ScriptFrame) -> ScriptFrame | None:
        """Return the other frame of an exchange."""
        found = (s for s in self.frames if s.exchange == of.exchange and s.side is not of.side)
        return next(found, None)

    def put(self, index: int, *frames: ScriptFrame) -> Script:
        """Return the script with other frames in place of one."""
        return self._replace(frames=[*self.frames[:index], *frames, *self.frames[index + 1 :]])

    def index(self, of: ScriptFrame) -> int:
        return next(at for at, each in enumerate(self.frames) if each is of)

    def file(self) -> bytes:
        """Write the script as a capture of complete connections."""
        wire, connections = tcp_captures.Wire(), {}
        for each in self.frames:
            wire.now_ns = max(wire.now_ns, each.time_ns)
            if each.connection not in connections:
                hosts, ports = _hosts(self.addresses[each.connection])
                connection = wire.connect(ports[0], hosts=hosts, broker_port=ports[1])
                connections[each.connection] = connection.syn()
            frame = each.frame if each.packet < 0 else sized(each.frame)
            connections[each.connection].send(int(each.side is Side.BROKER), frame)
        for connection in connections.values():
            connection.fin()
        return tcp_captures.pcap_file(wire.packets)


def _hosts(addresses: tuple[str, str]) -> tuple[tuple[str, str], tuple[int, int]]:
    (host, _, port), (other, _, its_port) = (each.rpartition(":") for each in addresses)
    return (host.strip("[]"), other.strip("[]")), (int(port), int(its_port))


@cache
def script_of(name: str) -> Script:
    """Return a capture of the corpus as a script."""
    frames, addresses = [], {}
    for number, each in enumerate(open_capture(CORPUS / f"{name}.pcap")):
        addresses[each.connection] = each.client, each.broker
        answered = each.status == "answered"
        whole = [
            (Side.CLIENT, each.request_time_ns, each.request_packet, each.request),
            (Side.BROKER, each.response_time_ns, each.response_packet, each.response),
        ]
        for side, time_ns, packet, message in whole:
            if message is not None and message.size == len(message.frame):
                place = each.connection, number, side, time_ns, packet
                frame = bytes(message.frame)
                frames.append(ScriptFrame(*place, frame, message, each.api or "", answered))
    frames.sort(key=lambda one: (one.time_ns, one.packet))
    return Script(frames, addresses)


def judged(script: Script) -> Verdict:
    """Judge a script by all rules."""
    return Judge(capture_rules()).judge_capture(open_capture("-", stdin=io.BytesIO(script.file())))


def findings_above_notes(verdict: Verdict) -> dict[tuple[Side, str, int], Finding]:
    """Return findings above notes by side, rule and count."""
    return {
        (kind.first.side, key_of(kind.first), kind.count): kind.first
        for kind in verdict
        if kind.first.severity is not Severity.NOTE
    }


@cache
def _without_fault(name: str) -> frozenset[tuple[Side, str, int]]:
    return frozenset(findings_above_notes(judged(script_of(name))))


Change = Callable[[Any, ScriptFrame, Script], Any]
"""Changes a body in place; `False`, or an error of looking: it can't be done to this one."""


@dataclass(frozen=True)
class Fault:
    """
    One fault.

    Attributes:
        family: Group of faults.
        name: Description.
        side: Side of the fault.
        inject: Returns the script with the fault; None if there is no suitable message.
        captures: Captures to try.
    """

    family: str
    name: str
    side: Side
    inject: Callable[[Script], Script | None]
    captures: tuple[str, ...]

    def script(self) -> tuple[str, Script]:
        """Return the first suitable capture, and its script with the fault."""
        for name in self.captures:
            found = self.inject(script_of(name))
            if found is not None:
                return name, found
        raise LookupError(f"no capture has a place for {self.family}: {self.name}")

    def found(self) -> list[Finding]:
        """Return the findings due to the fault."""
        name, script = self.script()
        return [
            each
            for key, each in findings_above_notes(judged(script)).items()
            if key not in _without_fault(name)
        ]


def body_fault(
    family: str,
    name: str,
    side: Side,
    api: str,
    change: Change,
    captures: tuple[str, ...],
    versions: range = range(100),
) -> Fault:
    """Return a fault in the body of the first suitable message of an API."""

    def inject(script: Script) -> Script | None:
        for at, each in enumerate(script.frames):
            if each.api != api or each.side is not side or each.version not in versions:
                continue
            if not each.answered or each.body is None or each.message.body_end != len(each.frame):
                continue
            body = deepcopy(each.body)
            try:
                if change(body, each, script) is False:
                    continue
                changed = each.with_body(body)
            except (LookupError, AttributeError, TypeError, ValueError):
                continue
            if changed.frame != each.frame:
                return script.put(at, changed)
        return None

    return Fault(family, name, side, inject, captures)
