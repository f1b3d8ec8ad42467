"""Messages from columns equal single messages; padded varints have the same values."""

from __future__ import annotations

import numpy as np
import pytest

from timeline.output.perfetto.protobuf import MessageColumns, content, integer, varint


def test_integers_have_their_shortest_form() -> None:
    assert [varint(value) for value in (0, 127, 128, 300)] == [
        b"\0",
        b"\x7f",
        b"\x80\x01",
        b"\xac\x02",
    ]
    assert varint(-1) == b"\xff" * 9 + b"\x01"


def test_columns_equal_single_messages() -> None:
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    values = np.array([0, 1, -1, 2**63 - 1, -(2**63)], np.int64)
    mask = np.array([True, False, True, True, True])
    inner = MessageColumns(5)
    inner.add(content(10, "né"))
    inner.add_integers(4, values, mask)
    event = MessageColumns(5)
    event.add_fixed(47, values.astype(np.uint64), mask)
    event.add_messages(4, inner, ~mask | (values > 0))
    framed = MessageColumns(5)
    framed.add_messages(11, event)
    outer = MessageColumns(5)
    outer.add_messages(1, framed)
    wanted = b""
    for value, has_value in zip(values.tolist(), mask.tolist(), strict=True):
        single = messages.TrackEvent()
        if has_value:
            single.flow_ids.append(value & 2**64 - 1)
        if not has_value or value > 0:
            annotation = single.debug_annotations.add(name="né")
            if has_value:
                annotation.int_value = value
        wanted += content(1, content(11, single.SerializeToString()))
    parsed = messages.Trace()
    parsed.ParseFromString(outer.encode())
    expected = messages.Trace()
    expected.ParseFromString(wanted)
    assert parsed == expected


def test_a_lone_surrogate_is_encoded() -> None:
    assert content(2, "\ud800") == content(2, "?")
    assert integer(1, 5) == b"\x08\x05"
