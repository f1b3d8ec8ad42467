from __future__ import annotations

from typing import Any

import pytest

from browse.detail.value_nodes import inside_of, records_text, value_text
from dissector.protocol.records import Record, new_batch
from dissector.view.text.tree_node import Block, TreeNode, tree_lines


def opened(value: Any) -> list[str]:
    node = TreeNode("value", value=value, place=Block("request", b"").whole)
    node.load = inside_of(node)
    return tree_lines(node)[1:]


def test_json_has_its_members() -> None:
    text = b'{"id": 7, "tags": ["a", "b"], "to": {"name": "\\u001b[31m"}, "none": null, "e": []}'
    assert opened(text) == [
        "  id: 7",
        "  tags: 2 items",
        '    [0]: "a"',
        '    [1]: "b"',
        "  to: 1 item",
        r'    name: "\x1b[31m"',
        "  none: null",
        "  e: 0 items",
    ]


def test_long_texts_are_split_into_lines() -> None:
    lines = opened("x" * 250 + "\n\x1b\n" + "y")
    assert [line.strip(" :") for line in lines] == ["x" * 100, "x" * 100, "x" * 50, r"\x1b", "y"]


@pytest.mark.parametrize("value", ["", "short", b"\xff\xfe", b"\0" * 300, 7, None, [1], b"", "[ "])
def test_completely_shown_values_are_not_opened(value: object) -> None:
    assert inside_of(TreeNode("value", value=value)) is None


@pytest.mark.parametrize("text", ["{not json}", "[" * 5000 + "]" * 5000, "[1e999, NaN]"])
def test_invalid_json_is_no_error(text: str) -> None:
    node = TreeNode("value", value=text)
    load = inside_of(node)
    assert load is not None
    assert all(each.line.isprintable() for each in load())


def test_secrets_are_not_opened() -> None:
    node = TreeNode("value", "***", value='{"password": "x"}', is_masked=True)
    assert inside_of(node) is None
    assert value_text(node) == "***"


@pytest.mark.parametrize(
    ("value", "copied"),
    [("a\tb", "a\tb"), (b"text", "text"), (b"\xff\0", "ff00"), (-1, "-1"), ([1], "1 item"),
     (None, "1 item"), (True, "True")],
)  # fmt: skip
def test_a_value_is_copied_without_its_name(value: object, copied: str) -> None:
    assert value_text(TreeNode("field", "1 item", value=value)) == copied


def test_a_records_field_says_what_it_holds() -> None:
    data = new_batch([Record(value=b"a"), Record(value=b"b")], codec="gzip").to_bytes()
    node = TreeNode("records", "hex", value=data)
    expected = f"1 batch, 2 records, gzip, offsets 0-1, crc ok, {len(data)} bytes"
    assert records_text(node) == expected
    damaged = TreeNode("records", "hex", value=data[:-1] + bytes([data[-1] ^ 1]))
    assert "crc wrong" in records_text(damaged)
    assert records_text(TreeNode("records", "hex", value=data + data[:20])).endswith(", cut")
    for other in (TreeNode("records", "hex", value=b"abc"), TreeNode("key", "hex", value=data)):
        assert records_text(other) == ""
    assert records_text(TreeNode("records", "***", value=data, is_masked=True)) == ""
