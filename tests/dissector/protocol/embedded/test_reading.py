"""The common reader of embedded values."""

from __future__ import annotations

import pytest

from dissector.protocol.embedded.reading import Embedded, problems_of, read, read_versioned
from dissector.protocol.schema import Int8, Int16, String, message

Pair = message(None, "1-2", flexible="2+")[
    Int8("left"),
    Int16("right", "2+"),
    String("label"),
]


@pytest.mark.parametrize(
    ("version", "data", "forward", "value", "read_as", "left", "problems"),
    [
        (1, "05 0001 61", False, {"left": 5, "label": "a"}, 1, b"", []),
        (2, "05 0006 02 61 00", False, {"left": 5, "right": 6, "label": "a"}, 2, b"", []),
        (
            1,
            "05 0001 61 ff",
            True,
            {"left": 5, "label": "a"},
            1,
            b"\xff",
            ["f at byte 4: 1 bytes are left over after Pair"],
        ),
        (9, "05 0006 02 61 00 ff", True, {"left": 5, "right": 6, "label": "a"}, 2, b"\xff", []),
        (
            9,
            "05",
            False,
            None,
            None,
            b"\5",
            ["f at byte 0: version 9 of Pair is not known (known: 1-2)"],
        ),
        (
            0,
            "05",
            True,
            None,
            None,
            b"\5",
            ["f at byte 0: version 0 of Pair is not known (known: 1-2)"],
        ),
        (
            1,
            "05 0002 61",
            False,
            None,
            1,
            b"\5\0\2a",
            ["f.label at byte 1: Pair v1: length 2 but 1 bytes are left in the message"],
        ),
    ],
)
def test_read(
    version: int,
    data: str,
    forward: bool,
    value: dict[str, object] | None,
    read_as: int | None,
    left: bytes,
    problems: list[str],
) -> None:
    found = read("f", "Pair", Pair, version, bytes.fromhex(data), forward=forward)
    assert (found.value, found.version, found.left) == (value, read_as, left)
    assert found.written_version == version
    assert [str(p) for p in found.problems] == problems
    assert (found.spans() is None) == (read_as is None)


def test_positions_are_relative_to_the_bytes() -> None:
    found = read_versioned("f", "Pair", Pair, bytes.fromhex("0001 05 0002 61"))
    assert (found.start, found.problems[0].position) == (2, 3)
    tree = found.spans()
    assert tree is not None
    assert [(s.name, s.start, s.problem != "") for s in tree.children] == [
        ("left", 2, False),
        ("label", 3, True),
    ]


def test_nested_problems_have_the_full_path() -> None:
    inner = read_versioned("allocation", "Pair", Pair, b"")
    outer = Embedded("metadata", "Outer", b"", inner=[inner])
    outer.problem("odd")
    assert [str(p) for p in problems_of(outer)] == [
        "metadata: odd",
        "metadata.allocation at byte 0: Pair begins with a version of 2 bytes, "
        "but only 0 are there",
    ]


def test_the_bytes_are_not_in_the_repr() -> None:
    assert "open-sesame" not in repr(Embedded("f", "n", b"open-sesame"))
