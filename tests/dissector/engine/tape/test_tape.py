"""The tape compared with the codecs: every API, side and version, with damaged bytes."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.engine.tape import tape, tape_interpreter
from dissector.engine.tape.tape_arrays import DEPTH
from dissector.protocol.api import Api
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.program import UNKNOWN_TAG, FieldRef, ProgramTable, programs
from dissector.protocol.spans import Span, spans
from tests.default_frames import request, response
from tests.kernel_modes import COMPILED, MODES, running
from tests.value_sources import VERSIONS, Source, Version, every_api, go_through, sources, versions


def lay_out(frames: list[tuple[bytes, int]]) -> tuple[Any, ...]:
    """Lay frames, each with the first step of its program, in two buffers."""
    data = np.frombuffer(b"".join(frame for frame, _ in frames) or b"\0", np.uint8)
    ends = np.cumsum([len(frame) for frame, _ in frames], dtype=np.int64)
    starts = ends - np.array([len(frame) for frame, _ in frames], np.int64)
    steps = np.array([step for _, step in frames], np.int64)
    # The first part of the frames is in `data`, the others in `held`.
    cut = int(ends[len(ends) // 2]) if frames else 0
    return data[:cut], data[cut:], starts, ends, steps, programs()


def read(
    frames: list[tuple[bytes, int]], wanted: np.ndarray | None = None, mode: str = COMPILED
) -> tape.Tape:
    """Run frames through the loop."""
    with running(mode, tape_interpreter.run):
        return tape.read(*lay_out(frames), every() if wanted is None else wanted)


def pieces_of(frames: list[tuple[bytes, int]], room: int, mode: str) -> list[tape.Tape]:
    """Run frames through the loop, in pieces of bounded size."""
    with running(mode, tape_interpreter.run):
        return list(tape.read_in_batches(*lay_out(frames), every(), room))


def every() -> np.ndarray:
    return np.ones(len(programs().field_refs), np.uint8)


def expected(message: Message) -> list[tuple[str, str, int, Any]]:
    """List (part, path, start in the frame, value) of all fields, from their spans."""
    schema, version = message.header
    rows = _rows("header", spans(schema, version, message.frame))
    assert message.schema is not None
    body = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
    return rows + _rows("body", body)


def _rows(part: str, span: Span) -> list[tuple[str, str, int, Any]]:
    out: list[tuple[str, str, int, Any]] = []
    for child in span.children:
        out += _row(part, child)
        out += _rows(part, child)
    return out


def _row(part: str, span: Span) -> list[tuple[str, str, int, Any]]:
    path = re.sub(r"\[\d+\]", "", span.path)
    value, declared = span.value, span.declared
    if span.name.startswith("tag "):
        return [(part, "unknown", span.end - len(value), len(value))]
    if declared is None:
        if isinstance(value, dict):
            return []
        return [(part, f"{path}.[]", *_content(span, value))]
    if declared.type.startswith("[]"):
        count = -1 if value is None else len(value)
        first = span.children[0].start if span.children else span.end
        return [(part, path, first, count)]
    if declared.type == "struct":
        return [] if value is not None else [(part, path, span.start, -1)]
    return [(part, path, *_content(span, value))]


def _content(span: Span, value: Any) -> tuple[int, Any]:
    match value:
        case None:
            return span.end, -1
        case str():
            size = len(value.encode("utf-8", "surrogateescape"))
            return span.end - size, size
        case bytes():
            return span.end - len(value), len(value)
        case UUID():
            return span.start, 16
        case float():
            return span.start, 8
        case _:
            return span.start, int(value)


def rows_of(read_tape: tape.Tape, message: int, start: int) -> list[tuple[str, str, int, int]]:
    at = np.flatnonzero(read_tape.message == message)
    out = []
    for row in at.tolist():
        place = programs().field_refs[read_tape.field[row]]
        part = "body" if place is None or place.key >= 0 else "header"
        path = "unknown" if place is None else place.path
        out.append((part, path, int(read_tape.start[row]) - start, int(read_tape.value[row])))
    return out


def check(frames: list[tuple[Message, int]], mode: str) -> None:
    """Compare the result of the loop for each frame with the codec."""
    result = read([(message.frame, step) for message, step in frames], mode=mode)
    start = 0
    for number, (message, _) in enumerate(frames):
        state = int(result.state[number])
        got = rows_of(result, number, start)
        shown = f"{message.api} v{message.api_version} {message.kind}"
        if message.body is None:
            assert state == tape.BROKEN
            assert got == []
        elif state != tape.BROKEN:
            assert state == (tape.LEFT_OVER if message.body_end < len(message.frame) else tape.FITS)
            assert int(result.end[number]) - start == message.body_end, shown
            rows = expected(message)
            assert [row for row in got if row[1] != "unknown"] == [
                r for r in rows if r[1] != "unknown"
            ], shown
            assert [row[2:] for row in got if row[1] == "unknown"] == [
                r[2:] for r in rows if r[1] == "unknown"
            ]
        else:
            # Valid frames left to the codec: tags out of order.
            assert _tags_out_of_order(message)
        start += len(message.frame)


def _tags_out_of_order(message: Message) -> bool:
    schema = message.schema
    assert schema is not None
    body = schema.codec(message.api_version or 0).build(message.body)
    return body != message.frame[message.body_start : message.body_end]


def _frame(key: int, kind: str, version: int, value: dict[str, Any], number: int) -> bytes:
    return (request if kind == "request" else response)(key, version, number, **value)[4:]


def _message(key: int, kind: str, version: int, frame: bytes) -> Message:
    return decode_request(frame) if kind == "request" else decode_response(frame, key, version)


@pytest.mark.thinned(2)
@given(chosen=st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=60), source=sources())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("mode", MODES)
def test_every_message(mode: str, chosen: list[Version], source: Source) -> None:
    """Messages of all kinds in one batch: valid, truncated, changed, and with bytes left over."""
    frames: list[tuple[Message, int]] = []
    for number, (key, kind, version, schema) in enumerate(chosen):
        frame = _frame(key, kind, version, source.value(schema, version), number)
        frame = source.damaged(frame, keep=8)
        message = _message(key, kind, version, frame)
        if kind == "request" and (message.api_key, message.api_version) != (key, version):
            continue  # another program would be used
        if kind == "response" and message.api_version != version:
            continue
        frames.append((message, programs().start(key, version, kind)))
    check(frames, mode)


@pytest.mark.thinned(3)
@every_api
def test_each_version(found: Api) -> None:
    """In one batch, as starting the loop costs more than reading a message."""
    frames: list[tuple[Message, int]] = []

    def add(message: Version, source: Source) -> None:
        key, kind, version, schema = message
        frame = _frame(key, kind, version, source.value(schema, version), 1)
        frames.append((_message(key, kind, version, frame), programs().start(key, version, kind)))

    go_through(versions(found), add, times=2)
    check(frames, False)


def test_only_requested_fields_are_written() -> None:
    step = programs().start(0, 9, "request")
    topic = {"name": "orders", "partition_data": [{"index": 3, "records": b"xyz"}]}
    frame = _frame(0, "request", 9, {"acks": -1, "topic_data": [topic, topic]}, 1)
    wanted = np.zeros(len(programs().field_refs), np.uint8)
    wanted[programs().field_numbers(0, "request")["topic_data.name"]] = 1
    result = read([(frame, step), (frame, step)], wanted)
    texts = [
        (int(m), (frame * 2)[s : s + n])
        for m, s, n in zip(result.message, result.start, result.value, strict=True)
    ]
    assert texts == [(0, b"orders")] * 2 + [(1, b"orders")] * 2


def test_unknown_messages_are_skipped() -> None:
    assert programs().start(999, 0, "request") == -1
    assert programs().start(0, 99, "request") == -1
    known = (_frame(12, "request", 4, {}, 1), programs().start(12, 4, "request"))
    result = read([(b"whatever", -1), known])
    assert result.state.tolist() == [tape.UNKNOWN, tape.FITS]


def members(count: int) -> tuple[bytes, int]:
    """Return a request with two rows for each member, and its first step."""
    several = [{"member_id": f"member-{n}", "group_instance_id": None} for n in range(count)]
    return _frame(13, "request", 3, {"members": several}, 1), programs().start(13, 3, "request")


ROWS_AROUND = 6
"""Rows of such a request that are of no member."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("room", [1, 7, 60, 1000])
def test_a_piece_has_whole_messages_and_bounded_rows(room: int, mode: str) -> None:
    counts = [0, 3, 1, 40, 2, 200, 0, 5]
    frames = [*map(members, counts), (b"\0\0\0\0", -1), members(1)]
    pieces = pieces_of(frames, room, mode)
    for each in pieces:
        assert len(each) <= room or len(each.state) == 1
    rows = [2 * count + ROWS_AROUND for count in [*counts, -ROWS_AROUND // 2, 1]]
    fields_per_message = [
        np.bincount(each.message, minlength=len(each.state)).tolist() for each in pieces
    ]
    assert [count for each in fields_per_message for count in each] == rows
    for before, after in pairwise(fields_per_message):
        assert sum(before) + after[0] > room
    whole = read(frames, mode=mode)
    assert whole.message.tolist() == np.repeat(np.arange(len(rows)), rows).tolist()
    for name in ("field", "item", "around", "start", "value", "state", "end"):
        joined = np.concatenate([getattr(each, name) for each in pieces])
        assert joined.tolist() == getattr(whole, name).tolist(), name


def test_no_messages() -> None:
    assert pieces_of([], 10, False) == []
    assert len(read([])) == len(read([]).state) == 0


def test_an_invalid_message_larger_than_the_room() -> None:
    """An error in the middle of a message with more fields than a piece has room for."""
    frame, step = members(100)
    first, second = pieces_of([(frame[:-1], step), members(0)], 50, False)
    assert (first.state.tolist(), len(first)) == ([tape.BROKEN], 0)
    assert (second.state.tolist(), len(second)) == ([tape.FITS], ROWS_AROUND)
    nothing = read([(b"\0" * 4, programs().start(13, 3, "response"))])
    assert nothing.state.tolist() == [tape.BROKEN]


def test_declarations_are_no_deeper_than_the_stack() -> None:
    table = ProgramTable()
    deepest = 0
    for key, kind, version, _ in VERSIONS:
        table.start(key, version, kind)
    for place in table.field_refs:
        if place is not None:
            deepest = max(deepest, place.path.count(".") + 1)
    assert 2 * deepest < DEPTH
    assert isinstance(table.field_refs[1], FieldRef)
    assert table.field_refs[UNKNOWN_TAG] is None
