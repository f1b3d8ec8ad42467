"""Reads traces by Perfetto's own descriptors, as trace_processor does."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from dissector.public import open_capture
from timeline.cli import timeline

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@dataclass
class Slice:
    """A slice, or an instant."""

    track: tuple[str, ...]
    name: str
    begin_ns: int
    end_ns: int
    values: dict[str, Any]
    flows: set[int]


@dataclass
class ReadTrace:
    """A trace; tracks are named by the path from the process."""

    slices: list[Slice] = field(default_factory=list)
    counters: dict[tuple[str, ...], list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def below(self, title: str) -> list[Slice]:
        """Return the slices of the tracks below a title."""
        return [each for each in self.slices if each.track[0].startswith(title)]


def trace_file(capture: Path, folder: Path, *words: str) -> Path:
    """Write the trace of a capture by the command."""
    path = folder / "trace.perfetto"
    command = ["timeline", str(capture), "-T", "perfetto", "-o", str(path), *words]
    assert main(command, [("timeline", timeline)]) == 0
    return path


def trace_of(capture: Path, folder: Path, *words: str) -> ReadTrace:
    """Return the trace of a capture."""
    return read_trace(trace_file(capture, folder, *words).read_bytes())


def read_trace(data: bytes) -> ReadTrace:
    """Read a trace: packets sorted by time, texts resolved; each slice must end on its track."""
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = messages.Trace()
    trace.ParseFromString(data)
    tracks: dict[int, tuple[str, ...]] = {0: ()}
    events = []
    texts: dict[str, dict[int, str]] = {}
    for packet in trace.packet:
        if packet.sequence_flags & 1:
            interned = packet.interned_data
            texts = {
                "event": {each.iid: each.name for each in interned.event_names},
                "name": {each.iid: each.name for each in interned.debug_annotation_names},
                "text": {
                    each.iid: each.str.decode() for each in interned.debug_annotation_string_values
                },
            }
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            name = described.name or described.process.process_name
            assert described.uuid not in tracks
            tracks[described.uuid] = (*tracks[described.parent_uuid], name)
        if packet.HasField("track_event"):
            track = tracks[packet.track_event.track_uuid]
            events.append((packet.timestamp, track, packet.track_event, texts))
    events.sort(key=lambda each: each[0])
    found, waiting = ReadTrace(), {}
    for time_ns, track, event, texts in events:
        if event.type == COUNTER:
            found.counters[track].append((time_ns, event.counter_value))
        elif event.type == END:
            waiting[track].end_ns = time_ns
            waiting.pop(track).flows.update(event.flow_ids)
        else:
            # Without nesting, a track has at most one open slice.
            assert track not in waiting
            name = event.name or texts["event"][event.name_iid]
            values = dict(_annotation(each, texts) for each in event.debug_annotations)
            each = Slice(track, name, time_ns, time_ns, values, set(event.flow_ids))
            found.slices.append(each)
            if event.type == BEGIN:
                waiting[track] = each
    assert not waiting
    return found


def exchanges_of(capture: Path) -> list[Any]:
    """Return the exchanges of a capture as objects."""
    return list(open_capture(capture))


def _annotation(each: Any, texts: dict[str, dict[int, str]]) -> tuple[str, Any]:
    name = each.name or texts["name"][each.name_iid]
    if each.WhichOneof("value") == "string_value_iid":
        return name, texts["text"][each.string_value_iid]
    return name, getattr(each, each.WhichOneof("value"))
