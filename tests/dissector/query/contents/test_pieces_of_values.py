"""Keys and values of many records are decoded some at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector.cli import main
from dissector.query.contents import decoded_values
from tests.dissector.query.contents.value_cases import PREFIX, reader_of

DEMO = str(Path(__file__).parents[4] / "captures" / "demo.pcap")
COLUMNS = "offset,headers,value,value_format,value_decoded,key_decoded"
WIDE = "".join(f" int32 field_{number} = {number + 1};" for number in range(4_000))


@pytest.mark.parametrize("rows", [1, 3])
def test_pieces_give_the_rows_of_the_whole(
    rows: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["records", DEMO, "-T", "ndjson", "--columns", COLUMNS]
    assert main(words) == 0
    whole = capsys.readouterr().out
    monkeypatch.setattr(decoded_values, "_PIECE_ROWS", rows)
    assert main(words) == 0
    assert whole.count("\n") > 3 * rows
    assert capsys.readouterr().out == whole


def test_a_short_value_of_a_wide_schema_is_no_large_text() -> None:
    reader = reader_of(f'syntax = "proto3"; message M {{{WIDE} }}', "PROTOBUF")
    found = reader.read("t", PREFIX + b"\0\x08\1", {}, is_key=False)
    assert found.problem is not None
    assert found.problem.startswith("more output than its size allows")
