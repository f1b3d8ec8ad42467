"""Byte spans of the fields of messages."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.errors import DecodeError
from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis, api
from dissector.protocol.headers import RequestHeader
from dissector.protocol.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Schema,
    String,
    Struct,
    message,
)
from dissector.protocol.spans import Span, spans
from tests.example_counts import examples
from tests.message_strategies import values

SOME = settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
PLAIN = {"int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "bool", "uuid"}
KINDS: tuple[Kind, ...] = ("request", "response")
EVERY = [
    (found.schema(kind), version)
    for found in all_apis()
    for kind in KINDS
    for version in found.schema(kind).versions
]

DEMO = message(900, "0-1", flexible="1+")[
    Int16("acks"),
    Array("topics", null="0+")[
        String("name"),
        Array("partitions", of=Int32),
    ],
    Struct("cursor", "1+", null="1+", default=None)[Int8("at"),],
    Struct("leader", "1+", tag=0)[Int32("leader_id"),],
]


def _table(root: Span) -> list[tuple[str, int, int, Any]]:
    """List path, start, end and value of each span; those with children have no value."""
    out = []
    for span in root.children:
        out.append((span.path, span.start, span.end, ... if span.children else span.value))
        out += _table(span)
    return out


def test_a_classic_message() -> None:
    data = bytes.fromhex("0001 00000002 000161 00000002 00000005 00000006 0000 00000000")
    root = spans(DEMO, 0, data)
    assert (root.path, root.name, root.declared, root.problem) == ("", "", None, "")
    assert (root.start, root.end) == (0, len(data))
    assert root.value == DEMO.codec(0).parse(data)
    assert _table(root) == [
        ("acks", 0, 2, 1),
        ("topics", 2, 27, ...),
        ("topics[0]", 6, 21, ...),
        ("topics[0].name", 6, 9, "a"),
        ("topics[0].partitions", 9, 21, ...),
        ("topics[0].partitions[0]", 13, 17, 5),
        ("topics[0].partitions[1]", 17, 21, 6),
        ("topics[1]", 21, 27, ...),
        ("topics[1].name", 21, 23, ""),
        ("topics[1].partitions", 23, 27, []),
    ]


def test_a_flexible_message() -> None:
    data = bytes.fromhex("0001 00 01 05 00 02 0007 00000007 01 0400 4d02 abcd")
    root = spans(DEMO, 1, data)
    assert root.problem == "", root.problem
    assert root.value == DEMO.codec(1).parse(data)
    assert _table(root) == [
        ("acks", 0, 2, 1),
        ("topics", 2, 3, None),
        ("cursor", 3, 6, ...),
        ("cursor.at", 4, 5, 5),
        ("leader", 9, 16, ...),
        ("leader.leader_id", 9, 13, 7),
        ("leader.tag 4", 16, 16, b""),
        ("tag 77", 18, 20, b"\xab\xcd"),
    ]


def test_a_null_struct() -> None:
    root = spans(DEMO, 1, bytes.fromhex("0001 00 ff 00"))
    assert _table(root)[2:] == [("cursor", 3, 4, None)]
    # Absent fields have a value but no span.
    assert root.value.leader == {"leader_id": 0}


def test_names_and_declarations() -> None:
    root = spans(DEMO, 0, bytes.fromhex("0001 00000001 0000 00000001 00000005"))
    topics = root.children[1]
    assert topics.declared is DEMO.fields[1]
    assert [(s.name, s.declared) for s in topics.children] == [("[0]", None)]
    assert [s.declared for s in topics.children[0].children] == list(DEMO.fields[1].fields)


def test_leaves_are_in_wire_order() -> None:
    root = spans(DEMO, 0, bytes.fromhex("0001 00000001 000161 00000001 00000005"))
    assert [leaf.path for leaf in root.leaves()] == [
        "acks",
        "topics[0].name",
        "topics[0].partitions[0]",
    ]


def test_a_message_in_the_middle_of_its_frame() -> None:
    frame = bytes.fromhex("0003 0000 00000007 000161 00000001 000162 99")
    header = spans(RequestHeader, 1, frame, 0, "header")
    assert header.name == "header"
    assert header.end == 11
    assert _table(header)[-1] == ("client_id", 8, 11, "a")
    found = api(3)
    assert found is not None
    body = spans(found.request, 0, frame, header.end)
    assert _table(body)[-1] == ("topics[0].name", 15, 18, "b")
    assert (body.start, body.end) == (11, 18)


def _random(data: st.DataObject) -> tuple[Schema, int, bytes]:
    schema, version = data.draw(st.sampled_from(EVERY))
    value = data.draw(values(schema, version))
    return schema, version, schema.codec(version).build(value)


@given(data=st.data())
@SOME
def test_spans_of_random_messages(data: st.DataObject) -> None:
    schema, version, written = _random(data)
    before = data.draw(st.binary(max_size=9))
    root = spans(schema, version, before + written, len(before))
    flexible = version in schema.flexible
    assert root.value == schema.codec(version).parse(written)
    assert (root.start, root.end) == (len(before), len(before) + len(written))
    bytes_of_leaves = _nested(root, before + written, flexible)
    # Bytes outside leaves are counts, null marks and tag headers of their parents.
    assert bytes_of_leaves <= len(written)
    if not flexible:
        counts = sum(4 for s in _all(root) if s.children and _counts(s))
        nulls = sum(
            1 for s in _all(root) if s.children and s.declared and version in s.declared.null
        )
        assert bytes_of_leaves + counts >= len(written) - nulls
        assert bytes_of_leaves + counts <= len(written)


def _all(span: Span) -> list[Span]:
    return [span, *(below for child in span.children for below in _all(child))]


def _counts(span: Span) -> bool:
    return span.declared is not None and span.declared.type.startswith("[]")


def _nested(span: Span, data: bytes, flexible: bool) -> int:
    """Check that spans are inside their parents without overlap; return the bytes of leaves."""
    assert span.problem == ""
    assert span.start <= span.end
    if not span.children:
        _leaf(span, data)
        return span.end - span.start
    at, held = span.start, 0
    for child in span.children:
        between = child.start - at
        assert between >= 0
        # Only a count, a null mark or a tag with its size can separate two fields.
        first = child is span.children[0]
        assert between == 0 or flexible or (first and between in (1, 4))
        held += _nested(child, data, flexible)
        at = child.end
    assert at <= span.end
    assert at == span.end or flexible
    return held


def _leaf(span: Span, data: bytes) -> None:
    """Decode the value of a leaf from the bytes of its span only."""
    content = data[span.start : span.end]
    value = span.value
    if isinstance(value, str):
        assert content.endswith(value.encode("utf-8", "surrogateescape"))
    elif isinstance(value, bytes):
        assert content.endswith(value)
    elif isinstance(value, int) and span.declared and span.declared.type in PLAIN:
        signed = not span.declared.type.startswith("uint")
        assert int.from_bytes(content, "big", signed=signed) == value
    elif value is None:
        assert content in (b"\xff", b"\xff\xff", b"\xff\xff\xff\xff", b"\0")


@given(data=st.data())
@settings(SOME, max_examples=examples(40))
def test_truncated_messages(data: st.DataObject) -> None:
    """At every length: complete fields stay, and the failing field is that of the codec's error."""
    schema, version, written = _random(data)
    whole = {(s.path, s.start, s.end): s.value for s in _all(spans(schema, version, written))}
    for end in range(len(written)):
        cut = spans(schema, version, written[:end])
        with pytest.raises(DecodeError) as raised:
            schema.codec(version).parse(written[:end])
        assert cut.problem == raised.value.what
        assert cut.end == raised.value.position
        blamed = [span for span in _all(cut) if span.problem]
        assert blamed[0] is cut
        assert all(span.children[-1] is below for span, below in itertools.pairwise(blamed))
        assert raised.value.path.startswith(blamed[-1].path)
        for span in _all(cut):
            assert 0 <= span.start <= span.end <= end
            if not span.problem:
                assert whole[span.path, span.start, span.end] == span.value


@pytest.mark.parametrize(
    ("version", "data", "path", "end", "what"),
    [
        (0, "00", "acks", 0, "2 bytes expected, 1 left"),
        (0, "0001 7fffffff", "topics", 2, "count 2147483647 but 0 bytes are left in the message"),
        (0, "0001 00000001 0005 61626364", "topics[0].name", 6, "length 5 but 4 bytes are left"),
        (
            0,
            "0001 00000001 0000 00000002 00000000",
            "topics[0].partitions",
            8,
            "count 2 but 4 bytes are left in the message",
        ),
        (1, "0001 01 01", "cursor.at", 4, "1 bytes expected, 0 left"),
        (1, "0001 01 ff", "", 4, "1 bytes expected, 0 left"),
        (1, "0001 01 ff 01 0004 00000001 00", "", 11, "tagged field ends at byte 12"),
        (1, "0001 01 ff 02 0500 0500", "", 7, "tag 5 occurs twice"),
    ],
)
def test_undecodable_bytes_are_problems(
    version: int, data: str, path: str, end: int, what: str
) -> None:
    root = spans(DEMO, version, bytes.fromhex(data))
    blamed = [span for span in _all(root) if span.problem]
    assert blamed[-1].path == path
    assert blamed[-1].problem.startswith(what)
    assert all(span.problem == blamed[-1].problem for span in blamed)
    assert root.end == blamed[-1].end == end
    assert root.value is None
