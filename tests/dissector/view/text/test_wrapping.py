from __future__ import annotations

from dissector.view.text.wrapping import wrapped


def test_lines_continue_below_their_text() -> None:
    lines = ["short", "  expected  Where the producer id is not -1, its epoch is 0 or more."]
    assert list(wrapped(lines, None)) == lines
    assert list(wrapped(lines, 40)) == [
        "short",
        "  expected  Where the producer id is not",
        "            -1, its epoch is 0 or more.",
    ]
    (long, *_) = wrapped(["x" * 100], 30)
    assert long == "x" * 30
    assert all(len(line) <= 24 for line in wrapped([" " * 60 + "some words " * 9], 24))
