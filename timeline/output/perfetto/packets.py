"""
Packets of a trace, encoded one by one or in columns.

Source: https://github.com/google/perfetto/blob/main/protos/perfetto/trace/trace_packet.proto and
track_event/track_event.proto, debug_annotation.proto, interned_data.proto
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dissector.engine.tables.exchange_table import Ints
from timeline.output.perfetto.protobuf import MessageColumns, content, integer

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""Types of a TrackEvent."""

NAME_IID, ANNOTATION, FLOW = 10, 4, 47
"""Fields of a TrackEvent."""

ANNOTATION_NAME_IID, INT_VALUE, STRING_IID = 1, 4, 17
"""Fields of a DebugAnnotation."""

_PACKET, _CLOCKS, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS = 1, 6, 8, 10, 11, 12, 13
_TYPE, _NAME, _TRACK, _COUNTER_VALUE = 9, 23, 11, 30
_ANNOTATION_NAME, _TEXT_VALUE = 10, 6
_EVENT_NAMES, _ANNOTATION_NAMES, _STRINGS = 2, 3, 29

_PLAIN, _INTERNING = integer(_SEQUENCE, 1), integer(_SEQUENCE, 2)
"""The sequences of self-contained packets, and of packets with interned texts."""

_STATE_CLEARED, _NEEDS_STATE = integer(_FLAGS, 1), integer(_FLAGS, 2)

_REALTIME, _BOOTTIME = 1, 6
"""Clocks: the capture's clock, and the trace's clock."""


def packet(fields: bytes) -> bytes:
    """Return a self-contained packet."""
    return content(_PACKET, _PLAIN + fields)


def clock_packet(time_ns: int) -> bytes:
    """Return a packet with which the user interface shows the time of day."""
    clocks = b"".join(
        content(1, integer(1, clock) + integer(2, time_ns)) for clock in (_REALTIME, _BOOTTIME)
    )
    return packet(integer(_TIMESTAMP, time_ns) + content(_CLOCKS, clocks))


def event_packet(
    kind: int,
    track: int,
    time_ns: int,
    name: str = "",
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """Return the packet of an event."""
    event = integer(_TYPE, kind) + integer(_TRACK, track)
    if name:
        event += content(_NAME, name)
    for key, value in (annotations or {}).items():
        event += content(ANNOTATION, content(_ANNOTATION_NAME, key) + content(_TEXT_VALUE, value))
    return packet(integer(_TIMESTAMP, time_ns) + content(_EVENT, event))


def counter_packets(track: Ints, time_ns: Ints, value: Ints) -> bytes:
    """Return the packets of points of counters."""
    events = MessageColumns(len(track))
    events.add(integer(_TYPE, COUNTER))
    events.add_integers(_TRACK, track, width=5)
    events.add_integers(_COUNTER_VALUE, value)
    return _packets(_PLAIN, time_ns, events)


def track_events(kind: int, track: Ints) -> MessageColumns:
    """Return TrackEvents, to which fields can be added."""
    events = MessageColumns(len(track))
    events.add(integer(_TYPE, kind))
    events.add_integers(_TRACK, track, width=5)
    return events


def event_packets(time_ns: Ints, events: MessageColumns) -> bytes:
    """Return the packets of TrackEvents, with texts interned by the last `texts_packet`."""
    return _packets(_INTERNING + _NEEDS_STATE, time_ns, events)


def texts_packet(
    event_names: Sequence[str], annotation_names: Sequence[str], strings: Sequence[str]
) -> bytes:
    """Return a packet that numbers texts, each list from 1, and discards previous numbers."""
    interned = b"".join(
        content(field, integer(1, number) + content(2, text))
        for field, texts in (
            (_EVENT_NAMES, event_names),
            (_ANNOTATION_NAMES, annotation_names),
            (_STRINGS, strings),
        )
        for number, text in enumerate(texts, 1)
    )
    return content(_PACKET, _INTERNING + _STATE_CLEARED + content(_INTERNED, interned))


def _packets(head: bytes, time_ns: Ints, events: MessageColumns) -> bytes:
    packets = MessageColumns(len(time_ns))
    packets.add(head)
    packets.add_integers(_TIMESTAMP, np.maximum(time_ns, 0))
    packets.add_messages(_EVENT, events)
    framed = MessageColumns(len(time_ns))
    framed.add_messages(_PACKET, packets)
    return framed.encode()
