from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dissector.protocol.messages import decode_request
from dissector.protocol.records import (
    Record,
    build_records,
    layout,
    new_batch,
    new_message_set,
)
from dissector.protocol.records.compression import compress
from dissector.protocol.records.message_set import LegacyRecord
from dissector.protocol.records.record_constructs import MESSAGE_BODY
from dissector.view.text.detail_tree import detail_node
from dissector.view.text.tree_node import Block, TreeNode
from tests.default_frames import request

RECORDS = [
    Record(key=f"k{n}".encode(), value=b"v" * n, headers=(("trace", b"%d" % n), ("none", None)))
    for n in range(5)
]


def walk(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    if node.load is not None:
        for child in node.load():
            yield from walk(child)


def root(records: bytes, topic: str = "orders", **options: bool) -> TreeNode:
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    frame = request(0, 3, 7, acks=-1, timeout_ms=500, topic_data=topics)[4:]
    return detail_node(decode_request(frame), **options)


def record_nodes(tree: TreeNode) -> list[TreeNode]:
    return [node for node in walk(tree) if isinstance(node.value, Record | LegacyRecord)]


def content(node: TreeNode) -> bytes:
    assert node.place is not None
    return node.place.block.data[node.place.start : node.place.end]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_field_of_a_record_has_its_bytes(codec: str) -> None:
    found = record_nodes(root(build_records([new_batch(RECORDS, codec=codec)])))
    assert len(found) == len(RECORDS)
    for node, record in zip(found, RECORDS, strict=True):
        assert node.load is not None
        fields = {each.name: each for each in node.load()}
        assert content(fields["key"]).endswith(record.key or b"")
        assert content(fields["value"]).endswith(record.value or b"")
        assert content(fields['header "trace"']).endswith(b"%d" % len(record.value or b""))
        assert (content(node)[0] >> 1) + 1 == len(content(node))
        assert node.place is not None
        assert node.place.block.is_frame == (codec == "none")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_each_field_of_an_old_message_has_its_bytes(magic: int, codec: str) -> None:
    data = build_records(new_message_set(RECORDS, magic=magic, codec=codec))
    for node, record in zip(record_nodes(root(data)), RECORDS, strict=True):
        assert node.load is not None
        fields = {each.name: each for each in node.load()}
        assert content(fields["key"]) == len(record.key or b"").to_bytes(4, "big") + record.key
        assert content(fields["value"]).endswith(record.value or b"")
        assert int.from_bytes(content(fields["offset"]), "big") == int(fields["offset"].text)


def test_nested_wrappers_have_no_positions() -> None:
    (inner,) = new_message_set(RECORDS[:2], magic=1, codec="gzip")
    value = compress(1, inner.to_bytes() * 2)
    payload = MESSAGE_BODY.build({"key": None, "value": value})
    outer = replace(inner, payload=payload, message_size=layout.MESSAGE_1.size - 12 + len(payload))
    found = record_nodes(root(outer.to_bytes(fix_crc=True)))
    assert len(found) == 4
    assert {node.place for node in found} == {None}


def test_damaged_records_have_the_fields_before_the_damage() -> None:
    data = bytearray(build_records([new_batch(RECORDS)]))
    data[61 + 4] = 0xFF  # the length of the first key
    found = record_nodes(root(bytes(data)))
    assert found == []
    assert any(node.is_problem for node in walk(root(bytes(data))))


def test_records_of_own_topics_are_masked_with_their_bytes() -> None:
    data = build_records([new_batch([Record(key=b"\0\1", value=b"s3cr3t")], codec="gzip")])
    blocks: dict[Block, None] = {}
    for node in walk(root(data, "__consumer_offsets")):
        if node.place is not None:
            blocks[node.place.block] = None
    frame, unpacked = blocks
    assert unpacked.masked == [(0, len(unpacked.data))]
    assert frame.masked
    shown = walk(root(data, "__consumer_offsets", show_secrets=True))
    assert all(not node.place.block.masked for node in shown if node.place is not None)


def test_spans_of_nodes_are_inside_their_parents() -> None:
    def check(node: TreeNode) -> None:
        for child in node.load() if node.load is not None else ():
            place, outer = child.place, node.place
            if place is not None and outer is not None and place.block is outer.block:
                assert outer.start <= place.start <= place.end <= outer.end, child.line
            check(child)

    check(root(build_records([new_batch(RECORDS), new_batch(RECORDS, codec="gzip")])))
