"""Errors and their texts: one line with the position."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from dissector.errors import (
    SHOWN_FILTER_CHARS,
    CaptureError,
    DecodeError,
    DissectorError,
    EncodeError,
    FilterError,
    PipelineError,
    Problem,
    UsageError,
    bug_location,
    innermost_error,
)

TEXTS = [
    (CaptureError("a.pcap", "empty file"), "a.pcap: empty file"),
    (CaptureError("-", "packet is cut off", 1234567), "-: packet is cut off at byte 1,234,567"),
    (CaptureError("a.pcap", "bad magic", 0), "a.pcap: bad magic at byte 0"),
    (DecodeError("length -2 is negative"), "message at byte 0: length -2 is negative"),
    (DecodeError("too short", "topics[1].name", 7), "topics[1].name at byte 7: too short"),
    (EncodeError("is missing"), "message: is missing"),
    (EncodeError("5 is not text", "topics[1].name"), "topics[1].name: 5 is not text"),
    (FilterError("api = 3", "unknown operator", 4), "filter, character 5: unknown operator"),
    (PipelineError("no executors"), "no executors"),
    (
        PipelineError("no executors", "spark.log"),
        "no executors (for details see Spark's log: spark.log)",
    ),
    (UsageError("no such format"), "no such format"),
]


def test_the_place_of_a_bug_is_that_of_the_innermost_error() -> None:
    def fail() -> None:
        raise KeyError("inner")

    async def main() -> None:
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
            outer.create_task(asyncio.sleep(0))
            inner.create_task(asyncio.to_thread(fail))

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(main())
    line = fail.__code__.co_firstlineno + 1
    assert bug_location(raised.value) == f"KeyError in test_errors.py line {line}"
    assert str(innermost_error(raised.value)) == "'inner'"
    assert bug_location(ValueError("never raised")) == "ValueError in no frame"


@pytest.mark.parametrize(("error", "text"), TEXTS)
def test_texts_of_errors(error: DissectorError, text: str) -> None:
    assert str(error) == text
    assert isinstance(error, DissectorError)


@pytest.mark.parametrize("kind", [DecodeError, EncodeError])
@pytest.mark.parametrize(
    ("names", "path"),
    [
        ((), ""),
        (("name",), "name"),
        (("[3]",), "[3]"),
        (("name", "[2]", "topics"), "topics[2].name"),
        (("[0]", "[1]", "rows"), "rows[1][0]"),
        (("id", "leader", "[0]", "parts", "[4]", "topics"), "topics[4].parts[0].leader.id"),
    ],
)
def test_paths_are_extended_by_enclosing_fields(
    kind: type[DecodeError | EncodeError], names: tuple[str, ...], path: str
) -> None:
    error = kind("bad")
    for name in names:
        assert error.within(name) is error
    assert error.path == path
    assert error.what == "bad"
    if path:
        assert str(error).startswith(path)


@pytest.mark.parametrize("error", [DecodeError("bad", "a.b", 7), EncodeError("bad", "a.b")])
def test_errors_can_be_pickled(error: DecodeError | EncodeError) -> None:
    unpickled = pickle.loads(pickle.dumps(error))
    assert str(unpickled) == str(error)
    assert unpickled.path == "a.b"


@pytest.mark.parametrize(
    "error", [CaptureError("a.pcap", "empty file", 3), FilterError("api", "cut off", 3)]
)
def test_further_errors_can_be_pickled(error: DissectorError) -> None:
    unpickled = pickle.loads(pickle.dumps(error))
    assert str(unpickled) == str(error)


def test_a_filter_is_shown_with_a_caret() -> None:
    error = FilterError("api == Fetch and and", "a condition is missing", 17)
    assert error.shown().splitlines() == [
        "filter, character 18: a condition is missing",
        "  api == Fetch and and",
        "                   ^",
    ]


@pytest.mark.parametrize("position", [0, 5, 79, 80, 81, 500, 999])
def test_the_caret_is_correct_in_a_long_filter(position: int) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(1000))
    _, shown, caret = FilterError(text, "bad", position).shown().splitlines()
    assert len(shown) <= SHOWN_FILTER_CHARS + 2
    assert shown[len(caret) - 1] == text[position]


def test_a_filter_of_several_lines_is_shown_on_one() -> None:
    shown = FilterError("api\n==\t\x1b[31m", "bad", 3).shown().splitlines()
    assert shown[1:] == ["  api == [31m".replace("== ", "==  "), "     ^"]


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("cut"), "cut"),
        (Problem("cut", "request"), "request: cut"),
        (Problem("cut", "request.acks", 9), "request.acks at byte 9: cut"),
        (Problem("cut", position=0), "at byte 0: cut"),
    ],
)
def test_problem(problem: Problem, text: str) -> None:
    assert str(problem) == text
