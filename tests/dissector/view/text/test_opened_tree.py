"""The tree of a message as nodes opened one by one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.api import Api
from dissector.protocol.messages import Message
from dissector.protocol.records import Record, build_records, new_batch, parse_records
from dissector.view.text.detail_tree import detail_node, detail_tree
from dissector.view.text.tree_node import Block, TreeNode, tree_lines
from tests.dissector.view.text.test_detail_tree import (
    SECRET,
    SECRETS,
    decoded,
    fetched,
    frame_of,
    produce,
    scram_record,
)
from tests.value_sources import Source, Version, every_api, go_through, versions


def walk(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    for child in node.load() if node.load is not None else ():
        yield from walk(child)


def blocks_of(root: TreeNode) -> list[Block]:
    return list({node.place.block: None for node in walk(root) if node.place is not None})


def shown_bytes(block: Block) -> bytes:
    data = bytearray(block.data)
    for start, end in block.masked:
        data[max(start, 0) : end] = b"*" * len(data[max(start, 0) : end])
    return bytes(data)


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_masked_in_nodes_and_bytes(name: str) -> None:
    root = detail_node(SECRETS[name]())
    for node in walk(root):
        for spelled in (SECRET, SECRET.encode().hex()):
            assert spelled not in node.line
    for block in blocks_of(root):
        assert SECRET.encode() not in shown_bytes(block)
    shown = detail_node(SECRETS[name](), show_secrets=True)
    assert any(SECRET.encode() in shown_bytes(block) for block in blocks_of(shown))


def test_secrets_in_compressed_records_are_masked() -> None:
    (plain,) = parse_records(scram_record())
    batch = new_batch(plain.records, codec="zstd")
    root = detail_node(fetched(build_records([batch]), "__cluster_metadata"))
    assert [block.is_frame for block in blocks_of(root)] == [True, False]
    assert all(SECRET.encode() not in shown_bytes(block) for block in blocks_of(root))


def test_fields_have_their_names_in_filters() -> None:
    paths = {node.name: node.path for node in walk(detail_node(produce(None)))}
    assert paths["request_api_key"] == "api_key"
    assert paths["client_id"] == "client_id"
    assert paths["acks"] == "request.acks"
    assert paths["index"] == "request.topic_data.partition_data.index"
    assert paths["body"] == paths["header"] == ""


def _check_opened(message: Version, source: Source) -> None:
    """Check that the nodes have the lines of the tree, for messages without records."""
    key, kind, version, schema = message
    frame = frame_of(key, kind, version, source.value(schema, version))
    for data in (frame, source.changed(frame, 1)):
        found = decoded(key, kind, version, data)
        root = detail_node(found)
        assert len(tree_lines(root)) >= len(detail_tree(found)) - 1
        _check_places(root, found)


def _check_places(root: TreeNode, message: Message) -> None:
    for node in walk(root):
        assert node.line.isprintable()
        if node.place is not None:
            assert 0 <= node.place.start <= node.place.end
            assert node.place.block.data is message.frame or not node.place.block.is_frame


@pytest.mark.thinned(3)
@every_api
def test_each_version_can_be_opened(found: Api) -> None:
    go_through(versions(found), _check_opened, times=1)


@given(st.binary(max_size=200), st.sampled_from(["t", "__consumer_offsets", "__cluster_metadata"]))
def test_any_bytes_in_a_records_field_can_be_opened(data: bytes, topic: str) -> None:
    message = produce(data, topic)
    _check_places(detail_node(message), message)


@given(st.data())
def test_damaged_batches_can_be_opened(data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]))
    records = [Record(key=b"k", value=b"v" * n, headers=(("h", b"x"),)) for n in range(4)]
    content = bytearray(build_records([new_batch(records, codec=codec)]))
    at = data.draw(st.integers(61, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255))
    for node in walk(detail_node(produce(bytes(content)))):
        if node.place is not None:
            assert 0 <= node.place.start <= node.place.end
