"""
Output of the commands for every capture in `captures/`, compared with golden files.

A golden file has a section for the connections, the exchanges with digests of their bodies, the
trees of all messages, and the records; TLS captures are decrypted with the key log beside them.
Long sections continue as marks of rows: some letters of a digest for each, so that a comparison
that fails names the rows that changed. Times and ports are omitted. `pytest tests/test_golden.py
--update-golden` rewrites them: review the difference before the commit. `make test` reads a part of
the captures.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

from dissector.cli import main
from tests.corpus import CAPTURES, each_capture
from tools.record.manifest import keylogs

GOLDEN = Path(__file__).parent / "golden"

SHOWN_ROWS = {"streams": 60, "pairs": 60, "messages": 0, "records": 20}
"""The sections, and how many of their rows are written out."""

BLOCK_ROWS, MARK_LETTERS = 20, 4
"""The others are marks, so many in a line and of so many letters, in base64: 24 bits for a row."""

SHOWN_LINES = 60
"""So many lines of changes are printed."""

MAX_BYTES = 60_000


NOTICE = re.compile(r"(kafkashark: \d+ connections? to \S+: the client spoke \w+, .*\n)+")
"""Clients of another protocol than their server's, as in scenes with TLS at a wrong port."""


@pytest.mark.thinned(2)
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

    sections = golden(lines)
    text = written(sections)
    file = GOLDEN / f"{path.name}.txt"
    if request.config.getoption("--update-golden"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    made = "pytest tests/test_golden.py --update-golden"
    assert file.exists(), f"{path.name} has no golden file: create it with `{made}`"
    changed = changes(file.read_text(), sections)
    assert text == file.read_text(), "\n".join([*changed, f"if intended: `{made}`"])
    assert len(text.encode()) < MAX_BYTES


def test_no_golden_file_is_obsolete() -> None:
    names = {f"{path.name}.txt" for path in CAPTURES}
    assert {path.name for path in GOLDEN.iterdir()} == names


def test_a_changed_row_is_named() -> None:
    rows = [f"row {number}" for number in range(100)]
    original = {"streams": [], "pairs": rows, "messages": ["a: 1"], "records": rows}
    before = written(original)
    changed = [*rows[:5], "changed", *rows[6:70], "another", *rows[71:90], *rows[91:]]
    now = {"streams": ["new"], "pairs": changed, "messages": ["a: 2"], "records": rows[:98]}
    assert changes(before, now) == [
        "streams 1-0 now 1-1:",
        "+ new",
        "pairs 6-6 now 6-6:",
        "- row 5",
        "+ changed",
        "pairs 71-71 now 71-71:",
        f"- (marked {mark('row 70')})",
        "+ another",
        "pairs 91-91 now 91-90:",
        f"- (marked {mark('row 90')})",
        "messages 1-1 now 1-1:",
        f"- (marked {mark('a: 1')})",
        "+ a: 2",
        "records 99-100 now 99-98:",
        f"- (marked {mark('row 98')})",
        f"- (marked {mark('row 99')})",
    ]
    assert changes(before, original) == []


def golden(lines: Any) -> dict[str, list[str]]:
    """Return the rows of each section; `lines` runs a command."""
    exchanges = rows(lines("pairs", "-T", "ndjson", "--bodies"))
    return {
        "streams": [*map(stream_line, rows(lines("streams", "-T", "ndjson")))],
        "pairs": [*map(pair_line, exchanges)],
        "messages": [*messages(lines("dissect", "-V"))],
        "records": [*map(record_line, rows(lines("records", "-T", "ndjson")))],
    }


def rows(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    return map(json.loads, lines)


def written(sections: dict[str, list[str]]) -> str:
    """Return the text of a golden file: of each section the first rows, marks of the others."""
    lines = list[str]()
    for name, found in sections.items():
        shown = SHOWN_ROWS[name]
        lines += [f"[{name}]", *found[:shown]]
        for start in range(shown, len(found), BLOCK_ROWS):
            block = found[start : start + BLOCK_ROWS]
            lines.append(f"{start + 1}-{start + len(block)}: {''.join(map(mark, block))}")
        lines += [f"{len(found)} {name}", ""]
    return "".join(f"{line}\n" for line in lines)


def changes(text: str, sections: dict[str, list[str]]) -> list[str]:
    """Return what changed since the text of a golden file: rows, from 1, before and now."""
    found = list[str]()
    before = marked(text)
    for name, rows in sections.items():
        was = before[name]
        marks = [each for each, _ in was], [mark(row) for row in rows]
        for kind, start, end, now, now_end in SequenceMatcher(None, *marks, False).get_opcodes():
            if kind != "equal":
                found.append(f"{name} {start + 1}-{end} now {now + 1}-{now_end}:")
                found += [f"- {row}" for _, row in was[start:end]]
                found += [f"+ {row}" for row in rows[now:now_end]]
    return found[:SHOWN_LINES]


def marked(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return the rows of a golden file by section: their marks, and what it has of them."""
    sections = dict[str, list[tuple[str, str]]]()
    for part in text.split("\n\n")[:-1]:
        head, *lines, _ = part.split("\n")
        name = head.strip("[]")
        shown = SHOWN_ROWS[name]
        letters = "".join(line.partition(": ")[2] for line in lines[shown:])
        marks = [letters[at : at + MARK_LETTERS] for at in range(0, len(letters), MARK_LETTERS)]
        sections[name] = [
            *((mark(line), line) for line in lines[:shown]),
            *((each, f"(marked {each})") for each in marks),
        ]
    return sections


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


def messages(lines: list[str]) -> Iterator[str]:
    """Yield the tree of each message, its first line without time and ports."""
    message: list[str] = []
    for line in lines:
        if line:
            message.append(line if message else line.split("->")[1].partition(" ")[2])
        else:
            yield "\n".join(message)
            message = []
    assert not message


def record_line(row: dict[str, Any]) -> str:
    names = ("connection", "correlation_id", "api", "topic", "partition", "offset", "codec")
    value = digest([row["key"], row["value"], row["headers"]])
    return " ".join([*(str(row[name]) for name in names), row["control"] or value])


def mark(row: str) -> str:
    """Return the letters that stand for a row."""
    return b64encode(hashlib.sha256(row.encode()).digest()).decode()[:MARK_LETTERS]


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
