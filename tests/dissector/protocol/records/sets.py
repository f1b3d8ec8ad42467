"""Message sets for tests: nested and damaged ones."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dissector.protocol.records import LegacyBatch, build_records
from dissector.protocol.records.compression import CODEC_IDS, compress
from dissector.protocol.records.record_constructs import MESSAGE_BODY
from tests.dissector.protocol.records.record_values import CODECS, MESSAGE_SETS


def wrap(inner: bytes, codec: str, magic: int, offset: int = 0) -> bytes:
    """Wrap a message set in a message."""
    number = CODEC_IDS[codec]
    value = compress(number, inner, magic=magic)
    time = 7 if magic else None
    body = MESSAGE_BODY.build({"key": None, "value": value})
    wrapper = LegacyBatch(offset, magic=magic, attributes=number, timestamp=time, payload=body)
    size = len(wrapper.to_bytes()) - 12
    return replace(wrapper, message_size=size).to_bytes(fix_crc=True)


@st.composite
def damaged_sets(draw: st.DrawFn) -> bytes:
    """Message sets, possibly nested, some truncated, some with changed bytes."""
    data = build_records(draw(MESSAGE_SETS))
    if draw(st.booleans()):
        data = wrap(data, draw(st.sampled_from(CODECS[1:])), draw(st.integers(0, 1)))
    out = bytearray(data)
    for _ in range(draw(st.integers(0, 2))):
        if out:
            out[draw(st.integers(0, len(out) - 1))] ^= draw(st.integers(1, 255))
    return bytes(out[: draw(st.integers(0, len(out)))]) if draw(st.booleans()) else bytes(out)
