"""Compiled functions compared with the interpreted form: every declaration at every version."""

from __future__ import annotations

import io
import random
from collections import OrderedDict
from typing import Any
from uuid import UUID

import pytest
from construct import Construct, Container
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.apis import all_apis
from dissector.protocol.codecs import emit
from dissector.protocol.codecs.compiled import FALLBACK_ERRORS
from dissector.protocol.codecs.structs import Fields, Member, TaggedFields
from dissector.protocol.codecs.wire import int8
from dissector.protocol.headers import RequestHeader, ResponseHeader
from dissector.protocol.records.record_constructs import RECORD
from dissector.protocol.schema import Schema
from tests.dissector.protocol.codecs.test_wire import CASES, HOSTILE, UNWRITABLE
from tests.dissector.protocol.embedded.test_declarations import SCHEMAS
from tests.value_sources import DRAWN, Source, go_through, sources

DECLARED: dict[str, Schema] = {
    **{
        f"{api.name}-{kind}": api.schema(kind)
        for api in all_apis()
        for kind in ("request", "response")
    },
    **SCHEMAS,
    "RequestHeader": RequestHeader,
    "ResponseHeader": ResponseHeader,
}
every_declaration = pytest.mark.parametrize("name", DECLARED)
JUNK = (None, -1, 2**70, 1.5, True, "x", "\ud800", b"x", bytearray(b"x"), [], (), {}, [None], ...)


def _read(parse: Any, data: bytes, start: int = 0) -> tuple[str, int] | None:
    """Return the repr of the value, which includes order and types, and its end."""
    stream = io.BytesIO(data)
    stream.seek(start)
    try:
        return repr(parse(stream)), stream.tell()
    except DecodeError:
        return None


def _compiled(read: Any, data: bytes, start: int = 0) -> tuple[str, int] | None:
    try:
        value, end = read(data, start)
    except FALLBACK_ERRORS:
        return None
    return repr(value), end


def _changed(data: bytes, chance: random.Random) -> bytes:
    """Change some bytes, and truncate or extend them."""
    bad = bytearray(data or b"\0")
    for _ in range(chance.randrange(3)):
        byte = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        bad[chance.randrange(len(bad))] = byte
    if chance.random() < 0.5:
        del bad[chance.randrange(len(bad)) :]
    return bytes(bad) + chance.randbytes(chance.choice((0, 0, 3)))


def _invalidated(value: Any, chance: random.Random) -> Any:
    """Replace or omit a part of a value."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        return rest if chance.random() < 0.2 else {**value, key: _invalidated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        index = chance.randrange(len(value))
        return [*value[:index], _invalidated(value[index], chance), *value[index + 1 :]]
    return chance.choice(JUNK)


def _agree(message: tuple[str, int], source: Source) -> None:
    name, version = message
    schema, chance = DECLARED[name], source.chance
    interpreted = schema.codec(version).subcon
    read, write = emit.compile_reader(interpreted), emit.compile_writer(interpreted)
    value = source.value(schema, version)

    good = interpreted.build(value)
    assert write(value) == good
    parsed, end = read(good, 0)
    assert (repr(parsed), end) == _read(interpreted.parse_stream, good)
    assert type(parsed) is Container
    assert write(parsed) == good
    before = b"before"
    assert _compiled(read, before + good, 6) == _read(interpreted.parse_stream, before + good, 6)

    for bad in [good[:cut] for cut in range(min(len(good), 30))] + [
        _changed(good, chance) for _ in range(30)
    ]:
        assert _compiled(read, bad) == _read(interpreted.parse_stream, bad)

    for _ in range(30):
        spoilt = _invalidated(value, chance)
        try:
            written = write(spoilt)
        except FALLBACK_ERRORS:
            continue
        assert written == interpreted.build(spoilt)


@pytest.mark.thinned(8)
@every_declaration
def test_both_forms_of_each_version_agree(name: str) -> None:
    go_through([(name, version) for version in DECLARED[name].versions], _agree, times=2)


@pytest.mark.long
@every_declaration
@given(data=st.data(), source=sources())
@settings(DRAWN, max_examples=3)  # each looks at a hundred changed messages
def test_both_forms_agree(name: str, data: st.DataObject, source: Source) -> None:
    _agree((name, data.draw(st.sampled_from(list(DECLARED[name].versions)))), source)


@pytest.mark.parametrize(("plain", "value", "data"), CASES)
def test_construct_compiles_codecs(plain: Construct, value: Any, data: str) -> None:
    encoded = bytes.fromhex(data)
    compiled = plain.compile()
    assert compiled.source.count("linkedparsers[") == 1
    assert repr(compiled.parse(encoded)) == repr(plain.parse(encoded))
    assert compiled.build(value) == encoded
    stream = io.BytesIO(b"__" + encoded + b"rest")
    stream.seek(2)
    compiled.parse_stream(stream)
    assert stream.read() == b"rest"


@pytest.mark.parametrize(("plain", "data", "path", "position", "what"), HOSTILE)
def test_decode_errors_come_from_the_interpreted_form(
    plain: Construct, data: str, path: str, position: int, what: str
) -> None:
    with pytest.raises(DecodeError) as raised:
        plain.compile().parse(bytes.fromhex(data))
    error = raised.value
    assert (error.path, error.position, error.what) == (path, position, what)
    with pytest.raises(FALLBACK_ERRORS):
        emit.compile_reader(plain)(bytes.fromhex(data), 0)


@pytest.mark.parametrize(("plain", "value", "text"), UNWRITABLE)
def test_encode_errors_come_from_the_interpreted_form(
    plain: Construct, value: Any, text: str
) -> None:
    with pytest.raises(EncodeError) as raised:
        plain.compile().build(value)
    assert str(raised.value) == text
    with pytest.raises(FALLBACK_ERRORS):
        emit.compile_writer(plain)(value)


def test_consecutive_integers_are_one_call() -> None:
    row = Fields([Member("a", int8), Member("inner", Fields([Member("b", int8)]))])
    compiled = Fields([Member("x", int8), Member("y", int8), Member("row", row)]).compile()
    assert compiled.source.count("unpack_from") == 2
    assert "unpack_bb" in compiled.source
    assert compiled.source.count(".pack\n") == 1
    assert "pack_bbbb" in compiled.source


def test_uncompilable_schemas_are_interpreted() -> None:
    for make in (emit.compile_reader, emit.compile_writer):
        with pytest.raises(NotImplementedError):
            make(RECORD)
    assert f"linkedparsers[{id(RECORD)}](io" in RECORD.compile().source


def test_default_values_are_independent() -> None:
    """Mutable ones, and those copied from one."""
    for default in (Container(a=1), Container(a=[]), Container(a=Container(b=UUID(int=1)))):
        member = Member("x", Fields([]), lambda default=default: default)
        read = emit.compile_reader(Fields([Member("y", int8)], TaggedFields({0: member})))
        first, second = read(b"\1\0", 0)[0], read(b"\1\0", 0)[0]
        assert repr(first) == repr(second) == repr(Container(y=1, x=default))
        assert first.x is not second.x
        assert first.x.a is not second.x.a or isinstance(first.x.a, int)


def test_odd_mappings_are_built_by_the_interpreted_form() -> None:
    odd = OrderedDict(x=1)
    point = Fields([Member("x", int8)])
    with pytest.raises(FALLBACK_ERRORS):
        emit.compile_writer(point)(odd)
    assert point.compile().build(odd) == b"\1"
