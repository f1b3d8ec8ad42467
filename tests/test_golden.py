"""
Output of the commands for every capture in `captures/`, compared with golden files.

A golden file has the connections, each exchange with a digest of its bodies, digests of the trees
of all messages and of the records; TLS captures are decrypted with the key log beside them. Long
sections continue as digests of blocks of lines. Times and ports are omitted. `pytest
tests/test_golden.py --update-golden` rewrites them: review the difference before the commit. `make
test` reads a part of the captures.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from tests.corpus import CAPTURES, each_capture
from tools.record.manifest import keylogs

GOLDEN = Path(__file__).parent / "golden"

SHOWN_LINES = 60
"""So many lines of a section are written out."""

BLOCK_LINES = 20
"""The others go by so many into one digest."""

MAX_BYTES = 60_000


NOTICE = re.compile(r"(kafkashark: \d+ connections? to \S+: the client spoke \w+, .*\n)+")
"""Clients of another protocol than their server's, as in scenes with TLS at a wrong port."""


@each_capture("golden")
def test_output_equals_the_golden_file(
    path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    keys = [word for each in keylogs(path) for word in ("--keylog", str(each))]

    def lines(*words: str) -> list[str]:
        status = main([words[0], str(path), *words[1:], *keys])
        out, err = capsys.readouterr()
        assert status == 0
        assert err == "" or NOTICE.fullmatch(err), err
        return out.split("\n")[:-1]

    text = "".join(f"{line}\n" for line in golden(lines))
    file = GOLDEN / f"{path.name}.txt"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    made = "pytest tests/test_golden.py --update-golden"
    assert file.exists(), f"{path.name} has no golden file: create it with `{made}`"
    assert text == file.read_text(), f"if intended: `{made}`"
    assert len(text.encode()) < MAX_BYTES


def test_no_golden_file_is_obsolete() -> None:
    names = {f"{path.name}.txt" for path in CAPTURES}
    assert {path.name for path in GOLDEN.iterdir()} == names


def golden(lines: Any) -> Iterator[str]:
    """Yield the lines of a golden file; `lines` runs a command."""
    yield from section("streams", map(stream_line, rows(lines("streams", "-T", "ndjson"))))
    exchanges = rows(lines("pairs", "-T", "ndjson", "--bodies"))
    yield from section("pairs", map(pair_line, exchanges))
    yield from section("messages", map(digest, messages(lines("dissect", "-V"))), shown=0)
    yield from section("records", map(record_line, rows(lines("records", "-T", "ndjson"))), 20)


def rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    return map(json.loads, lines)


def section(name: str, lines: Iterable[str], shown: int = SHOWN_LINES) -> Iterator[str]:
    """Yield a section: the first lines, digests of the others, and their number."""
    rest = iter(lines)
    number = 0
    yield f"[{name}]"
    for line in islice(rest, shown):
        number += 1
        yield line
    while block := list(islice(rest, BLOCK_LINES)):
        yield f"{number + 1}-{number + len(block)}: {digest(block)}"
        number += len(block)
    yield f"{number} {name}"
    yield ""


def stream_line(row: dict[str, Any]) -> str:
    sides = ("packets", "bytes", "retransmitted", "gap_bytes", "skipped")
    counts = [f"{name} {row[f'{name}_a']}/{row[f'{name}_b']}" for name in sides]
    who = f"client {row['client']}" if row["client"] else ""
    ended = row["ended"] or "open"
    return " ".join(filter(None, [str(row["connection"]), row["speaks"], who, ended, *counts]))


def pair_line(row: dict[str, Any]) -> str:
    what = f"{row['api']} v{row['api_version']} id {row['correlation_id']}"
    marks = [
        str(row["connection"]),
        what,
        str(row["client_id"]),
        row["status"],
        f"{row['request_bytes']}/{row['response_bytes']}",
        digest([row["request"], row["response"]]),
        *row["errors"],
        *row["topics"],
        *(f"[{problem}]" for problem in row["problems"]),
    ]
    return " | ".join(json.dumps(mark)[1:-1] for mark in marks)


def messages(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines of each message, the first without its time and ports."""
    message: list[str] = []
    for line in lines:
        if line:
            message.append(line if message else line.split("->")[1].partition(" ")[2])
        else:
            yield message
            message = []
    assert not message


def record_line(row: dict[str, Any]) -> str:
    names = ("connection", "correlation_id", "api", "topic", "partition", "offset", "codec")
    value = digest([row["key"], row["value"], row["headers"]])
    return " ".join([*(str(row[name]) for name in names), row["control"] or value])


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
