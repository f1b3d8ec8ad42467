"""Plain command lines: the same values as from Typer, or left to Typer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.cli.parsing import plain_parser, typer_commands
from dissector.cli.parsing.builtin_commands import COMMANDS, command_function
from dissector.cli.parsing.parameters import Parameter
from dissector.cli.parsing.typer_commands import application
from tests.example_counts import examples

EFFECTS = {"--schemas", "--show-secrets"}
"""Their callbacks change this process."""

TEXTS = (
    *("a.pcap", "b.pcap", "", "-", "--", "0", "1", "4.4", "-1", "65536", "nan", "Produce"),
    *("-T=csv", "-Tcsv", "-Vx", "-x1", "--port=9092", "--port=", "--utc=1", "--no-utc", "--help"),
)


@pytest.mark.parametrize("name", COMMANDS)
@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_values_are_those_of_typer(name: str, data: st.DataObject) -> None:
    command = command_function(name)
    options = sorted({each for names in _names(command) for each in names} - EFFECTS)
    words = st.sampled_from(TEXTS) if not options else st.sampled_from((*options, *TEXTS))
    _compare(command, data.draw(st.lists(words, max_size=8)))


@pytest.mark.parametrize(
    ("name", "words", "some"),
    [
        ("pairs", ["a.pcap", "-T", "ndjson", "-o", "out"], {"form": "ndjson", "output": "out"}),
        ("pairs", ["a", "--port=1", "b", "--port", "2"], {"captures": ["a", "b"], "ports": [1, 2]}),
        ("pairs", ["-c", "1", "-", "-c", "2"], {"captures": ["-"], "limit": 2, "bodies": False}),
        ("dissect", ["-V", "-Y", "-T", "a"], {"filter_text": "-T", "verbose": True}),
        ("dissect", ["-i", "eth0", "-w", "kept"], {"captures": None, "file_to_keep": Path("kept")}),
        ("schema", ["Fetch", "12"], {"form": "text"}),
        ("stats", ["a", "--interval", "0.5"], {"interval": 0.5}),
        ("upgrade", ["--to", "4.4", "a"], {"to": "4.4", "captures": ["a"]}),
    ],
)
def test_usual_command_lines_are_plain(name: str, words: list[str], some: dict[str, Any]) -> None:
    values = _compare(command_function(name), words)
    assert values is not None
    assert some.items() <= values.items()


@pytest.mark.parametrize(
    "words",
    [
        *(["-h"], ["a", "--"], ["a", "--nope"], ["a", "-T"], ["a", "-Tcsv"], ["a", "-c", "0"]),
        *(["a", "-c", "x"], ["a", "--utc=1"], ["--list-columns"]),
    ],
)
def test_others_are_left_to_typer(words: list[str]) -> None:
    assert plain_parser.parse(command_function("pairs"), words) is None


def _compare(command: Callable[..., Any], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of the plain parser, if any, after comparison with those of Typer."""
    received: list[dict[str, Any]] = []

    def record(**values: Any) -> None:
        received.append(values)

    record.__signature__ = inspect.signature(command, eval_str=True)  # type: ignore[attr-defined]
    values = plain_parser.parse(record, words)
    run = application(["record"], [("record", record)])
    unchecked = patch.object(typer_commands, "run_checked", lambda given, values: given(**values))
    with unchecked, suppress(Exception):
        run(args=["record", *words], standalone_mode=False)
    assert values is None or received == [values]
    return values


def _names(command: Callable[..., Any]) -> list[tuple[str, ...]]:
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    declared = [get_args(each.annotation)[1] for each in parameters]
    assert all(isinstance(each, Parameter) for each in declared)
    return [each.names for each in declared]
