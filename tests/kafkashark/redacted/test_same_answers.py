"""What the commands say about a redacted capture is what they say about the capture itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dissector.cli import main
from tests.corpus import each_capture
from tests.kafkashark.redacted.redacted_captures import Copy, keylog_words, redact
from tests.kafkashark.redacted.renamed_rows import (
    IDS,
    NUMBERS,
    Row,
    comparable,
    text_renamer,
    whole_renamer,
)

COMMANDS = ("pairs", "records", "stats", "groups", "timeline", "conform")
WITH_TEXTS = ("groups", "timeline")
"""Commands with names inside of texts."""

NOT_COMPARED = {*NUMBERS, *IDS}

_QUOTED = re.compile(r"""(['"]).*\1""")
_DURATION_OR_COUNT = re.compile(r"\b\d+ (?:ms|s|members?|partitions?)\b")

Rows = Callable[..., tuple[int, list[Row]]]


@pytest.fixture
def rows(capsys: pytest.CaptureFixture[str]) -> Rows:
    """Return the exit status of a command, and its rows."""

    def run(command: str, capture: Path, *words: str) -> tuple[int, list[Row]]:
        capsys.readouterr()
        status = main([command, str(capture), "-T", "ndjson", *words])
        return status, [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]

    return run


@pytest.mark.thinned(16)
@each_capture("export")
def test_the_same_rows_but_for_names(
    path: Path, rows: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = redact(path, tmp_path)
    notes = capsys.readouterr().err
    assert "other rows" not in notes
    assert "zeros" not in notes
    # Plaintext of TLS is written as new connections, without the RTTs of the captured ones.
    left_out = (*NOT_COMPARED, *(("network_ms", "server_ms") if copy.keylogs else ()))
    for command in COMMANDS:
        status, before = rows(command, copy.capture, *keylog_words(copy.keylogs))
        status_after, after = rows(command, copy.redacted)
        assert status_after == status, command
        if command == "stats":
            check_connections(split_capture(before), split_capture(after), copy)
        renamer = text_renamer if command in WITH_TEXTS else whole_renamer
        old, new = (list(map(without_short_names, each)) for each in (before, after))
        rename = renamer(copy.names)
        # Of both, as some names are words of our texts: "first" is a member, and "from" a resource.
        found, expected = (
            # Connections without an exchange, as refused ones, are not in each export.
            comparable(filter(is_of_exchanges, each), rename, left_out)
            for each in (new, old)
        )
        assert found == expected, command


def is_of_exchanges(row: Row) -> bool:
    """Return whether a row is no event of a connection without exchanges."""
    return row.get("event") != "connect failed"


def without_short_names(row: Row) -> Row:
    """
    Return a row of findings or events without shortened names of the capture.

    Findings quote and cut them, events shorten members that begin with their client's name. The
    subject of a verdict is the name of the file.
    """
    if "found" in row:
        return {**row, "found": _QUOTED.sub("", row["found"])}
    if row.get("section") == "summary":
        return {**row, "subject": "", "not_read": []}
    if row.get("cause") in ("another protocol", "fin"):
        # An export holds no bytes of another protocol, so that connection merely ended.
        return {**row, "cause": "fin", "text": "", "certain": False}
    if row.get("kind") == "group":
        return {**row, "text": " ".join(_DURATION_OR_COUNT.findall(row["text"]))}
    return row


def split_capture(rows: list[Row]) -> Row:
    """Remove the row about the whole capture from those of `stats`, and return it."""
    [row] = [each for each in rows if each["section"] == "capture"]
    rows.remove(row)
    return row


def check_connections(before: Row, after: Row, copy: Copy) -> None:
    """Compare the counts of connections: those without an exchange are in no export."""
    assert before["kafka_connections"] <= after["connections"] <= before["connections"]
    assert after["packets"] <= before["packets"] or copy.keylogs
    assert after["tls_connections"] == after["decrypted_connections"] == 0
    others = {"packets", "connections", "tls_connections", "decrypted_connections"}
    if copy.keylogs:  # decrypted messages are written once, as plain TCP
        assert after["retransmitted_bytes"] == 0
        others.add("retransmitted_bytes")
    same = before.keys() - others
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
