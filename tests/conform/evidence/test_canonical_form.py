"""The quick check of a message and the walk through its bytes agree on any bytes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conform.evidence.canonical_form import find_form_faults, is_canonical
from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis
from dissector.protocol.messages import Message, decode_request, decode_response
from tests import default_frames
from tests.message_strategies import values

DECLARED = [(api, kind) for api in all_apis() for kind in ("request", "response")]


def decoded(kind: Kind, key: int, version: int, frame: bytes) -> Message:
    if kind == "request":
        return decode_request(frame)
    return decode_response(frame, key, version)


@given(st.data())
def test_walk_and_quick_check_agree(data: st.DataObject) -> None:
    api, kind = data.draw(st.sampled_from(DECLARED))
    schema = api.schema(kind)
    version = data.draw(st.sampled_from(list(schema.versions)))
    body = data.draw(values(schema, version))
    write = default_frames.request if kind == "request" else default_frames.response
    frame = bytearray(write(api.key, version, 1, **body)[4:])
    start = 8 if kind == "request" else 4
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(start, len(frame)))
        frame[at : at + data.draw(st.integers(0, 1))] = data.draw(st.binary(max_size=2))
    message = decoded(kind, api.key, version, bytes(frame))
    if message.schema is None or message.api_version != version:
        return
    found = find_form_faults(message)
    if message.body is None:
        assert not is_canonical(message)
        assert found.end is None or found.found
    else:
        assert found.end == message.body_end
        assert is_canonical(message) is not bool(found.found)
        for fault in found.found:
            assert 0 <= fault.start < fault.end <= message.body_end


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("api", "kind"), DECLARED, ids=lambda value: str(value)[:40])
def test_our_encoding_is_canonical_at_every_version(api: object, kind: Kind) -> None:
    draw = random.Random(7)
    for version in api.schema(kind).versions:
        write = default_frames.request if kind == "request" else default_frames.response
        frame = write(api.key, version, draw.randrange(1 << 31))
        message = decoded(kind, api.key, version, frame[4:])
        assert is_canonical(message), version
        assert find_form_faults(message).found == []
