"""
Events as a Mermaid sequence diagram, which GitHub and GitLab render.

Each exchange of the evidence is a pair of arrows, each event a note, all in the order of time.
Begins and ends of connections are left out: the exchanges show who speaks with whom.

Source: https://mermaid.js.org/syntax/sequenceDiagram.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dissector.view.text.escape import escaped
from timeline.events.event import Event, Evidence
from timeline.events.words import client_name, counted

MAX_EVENTS = 60
"""Maximum number of events; viewers reject larger diagrams."""

MAX_ARROWS = 12
"""Maximum number of exchanges per event."""

_WRAPPED = '%%{init: {"sequence": {"wrap": true}}}%%'
"""Keeps long texts within their boxes."""

_NOISE = frozenset((("connection", "connected"), ("connection", "closed")))
"""Kind and name of events without a note."""
_MANY = 10
"""So many of them are news."""

_REPLACED = {"#": "#35;", ";": "#59;", "<": "#60;", ">": "#62;", "%": "#37;"}
"""Characters with a meaning in Mermaid, and their entity codes."""


def mermaid_lines(
    events: Iterable[Event], places: Callable[[Iterable[int]], str] = lambda packets: ""
) -> Iterator[str]:
    """Yield the lines of a diagram of the first events; `places`: see `event_lines`."""
    shown, left = _chosen(events)
    drawn: set[Evidence] = set()
    names: dict[str, str] = {}
    body: list[tuple[int, int, str]] = []
    for event in shown:
        arrows = [each for each in event.evidence if each not in drawn][:MAX_ARROWS]
        drawn.update(arrows)
        body += ((packet, 0, text) for packet, text in _arrows(arrows, names, places))
        # Below the last exchange that proves it.
        body.append((max(event.packets, default=0), 1, _note(event, names)))
    yield _WRAPPED
    yield "sequenceDiagram"
    for label, name in names.items():
        yield f"    participant {name} as {_safe(label)}"
    yield from (text for _, _, text in sorted(body, key=lambda each: each[:2]))
    if left:
        ends = _span(list(names.values()))
        yield f"    Note over {ends}: {counted(left, 'more event')}, -Y and --kind select"


def _chosen(events: Iterable[Event]) -> tuple[list[Event], int]:
    """Return the first events and the number of others; noise only if there is nothing else."""
    found: dict[bool, list[Event]] = {False: [], True: []}
    counts = {False: 0, True: 0}
    for event in events:
        is_noise = (event.kind, event.event) in _NOISE and event.count < _MANY
        counts[is_noise] += 1
        if len(found[is_noise]) < MAX_EVENTS:
            found[is_noise].append(event)
    is_noise = not found[False]
    return found[is_noise], counts[is_noise] - len(found[is_noise])


def _arrows(
    evidence: Iterable[Evidence],
    names: dict[str, str],
    places: Callable[[Iterable[int]], str],
) -> list[tuple[int, str]]:
    """Return the requests and responses of exchanges, with their packets."""

    def place(packet: int) -> str:
        return f"(packet {packet}{', ' if (found := places([packet])) else ''}{_safe(found)})"

    lines = []
    for each in evidence:
        client, broker = (
            _participant(client_name(each.client_id, each.client), names),
            _participant(each.broker, names),
        )
        api = _safe(each.api or ("response" if each.request_packet is None else "connect"))
        if each.request_packet is not None:
            text = f"    {client}->>{broker}: {api} {place(each.request_packet)}"
            lines.append((each.request_packet, text))
        if each.response_packet is not None:
            text = f"    {broker}-->>{client}: {api} {place(each.response_packet)}"
            lines.append((each.response_packet, text))
    return lines


def _note(event: Event, names: dict[str, str]) -> str:
    ends = [
        _participant(label, names)
        for each in event.evidence
        for label in (client_name(each.client_id, each.client), each.broker)
    ]
    cause = f" ({event.cause})" if event.cause else ""
    cause += f" x {event.count:,}" if event.count > 1 else ""
    doubt = "" if event.certain else " uncertain:"
    text = _safe(f"{event.kind} {event.subject}, {event.event}{cause}:{doubt} {event.text}")
    return f"    Note over {_span(ends)}: {text}"


def _span(names: list[str]) -> str:
    """Return the first and the last participant, in diagram order."""
    ordered = sorted(set(names), key=lambda name: int(name[1:]))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]},{ordered[-1]}"


def _participant(label: str, names: dict[str, str]) -> str:
    return names.setdefault(label, f"p{len(names) + 1}")


def _safe(text: str) -> str:
    return "".join(_REPLACED.get(character, character) for character in escaped(text))
