"""The interpreted and the compiled form of a codec give equal results, and are used as intended."""

from __future__ import annotations

import io
from typing import Any

import pytest
from construct import Struct

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.apis import api
from dissector.protocol.codecs import codec as module
from dissector.protocol.codecs import emit
from dissector.protocol.codecs.codec import Codec

BODY = {"group_id": "g", "generation_id": 7, "member_id": "m", "group_instance_id": None}
DATA = b"\2g\0\0\0\7\2m\0\0"


@pytest.fixture(params=["interpreted", "compiled"])
def codec(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Codec:
    """A fresh codec."""
    monkeypatch.setattr(module, "COMPILE_AFTER", 0 if request.param == "compiled" else 10**9)
    found = api(12)
    assert found is not None
    fresh = found.request.codec(4)
    return Codec(fresh.subcon)


def test_both_forms_have_the_interface_of_construct(codec: Codec) -> None:
    assert codec.parse(DATA + b"rest") == BODY
    assert codec.parse(bytearray(DATA)) == codec.parse(memoryview(DATA)) == BODY
    assert codec.build(BODY) == DATA
    stream = io.BytesIO(b"ab" + DATA + b"rest")
    stream.seek(2)
    assert codec.parse_stream(stream) == BODY
    assert stream.read() == b"rest"
    out = io.BytesIO()
    codec.build_stream(BODY, out)
    assert out.getvalue() == DATA
    both = Struct("first" / codec, "second" / codec)
    assert both.parse(DATA * 2).second == both.compile().parse(DATA * 2).second == BODY
    assert both.build({"first": BODY, "second": BODY}) == DATA * 2
    assert codec.compile().parse(DATA) == BODY
    assert codec.compile().build(BODY) == DATA


def test_both_forms_give_the_same_errors(codec: Codec) -> None:
    with pytest.raises(DecodeError) as raised:
        codec.parse(DATA[:7])
    assert (raised.value.path, raised.value.position) == ("member_id", 6)
    stream = io.BytesIO(b"ab" + DATA[:7])
    stream.seek(2)
    with pytest.raises(DecodeError) as raised:
        codec.parse_stream(stream)
    assert (raised.value.path, raised.value.position) == ("member_id", 8)
    with pytest.raises(EncodeError, match="member_id: 5 is not text"):
        codec.build(BODY | {"member_id": 5})
    with pytest.raises(TypeError):
        codec.parse("text")  # type: ignore[arg-type]


def test_parsed_values_are_independent(codec: Codec) -> None:
    first, second = codec.parse(DATA), codec.parse(DATA)
    first.member_id = "x"
    assert second.member_id == "m"


def test_codecs_are_compiled_after_some_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(name: str) -> None:
        make = getattr(emit, name)

        def making(construct: Any) -> Any:
            made.append(name)
            return make(construct)

        monkeypatch.setattr(emit, name, making)

    counted("compile_reader")
    counted("compile_writer")
    found = api(12)
    assert found is not None
    fresh = found.request.codec(4)
    codec = Codec(fresh.subcon)
    for _ in range(module.COMPILE_AFTER):
        assert codec.parse(DATA) == BODY
    assert made == []
    for _ in range(module.COMPILE_AFTER):
        assert codec.parse_stream(io.BytesIO(DATA)) == BODY
    assert made == ["compile_reader"]
    for _ in range(module.COMPILE_AFTER):
        assert codec.build(BODY) == DATA
    assert made == ["compile_reader"]
    for _ in range(module.COMPILE_AFTER):
        assert codec.build(BODY) == DATA
    assert made == ["compile_reader", "compile_writer"]
