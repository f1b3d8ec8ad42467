"""What the tables say of secrets and of what is wrong, and which of them are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.local import dissect
from pipeline.schemas import SCHEMAS
from pipeline.tables import Wanted
from tests.dissector.cli.test_secrets import PLAYS, SALT, SECRET
from tests.packets import Talk, Wire, write
from tests.pipeline.commands import assert_same, tables_of
from tests.pipeline.traffic import messy

CAPTURES = Path(__file__).parents[2] / "captures"
ALL = Wanted(tables=frozenset(SCHEMAS))


@pytest.mark.parametrize("play", PLAYS)
def test_secrets_are_in_no_table(play: Callable[[Talk], None], tmp_path: Path) -> None:
    wire = Wire()
    play(wire.talk())
    name = write(tmp_path / "a.pcap", wire.packets)
    for size in (150, 1 << 20):
        got = dissect([name], ALL, range_bytes=size)
        assert_same(got, tables_of([name], tmp_path))
        for table in got.values():
            text = repr(table.to_pylist())
            for secret in (SECRET.decode(), SECRET.hex(), SALT.decode()):
                assert secret not in text


def test_what_is_wrong_has_a_row_each(tmp_path: Path) -> None:
    name = write(tmp_path / "a.pcap", messy(3))
    got = dissect([name], ALL, range_bytes=5000)
    said = got["problems"].to_pylist()
    assert len(said) > 3
    messages = {
        (row["connection"], row["packet"], row["kind"], row["correlation_id"]): row["problems"]
        for row in got["messages"].to_pylist()
        if row["problems"]
    }
    for row in said:
        key = row["connection"], row["packet"], row["kind"], row["correlation_id"]
        assert any(row["problem"] in text for text in messages[key])
    assert len(said) == sum(map(len, messages.values()))


@pytest.mark.parametrize("tables", [{"fields"}, {"records"}, {"messages", "problems"}])
def test_only_what_is_wanted_is_made(tables: set[str]) -> None:
    files = [str(CAPTURES / "kafka4-franz-go.pcap")]
    whole = dissect(files, ALL, range_bytes=9000)
    got = dissect(files, Wanted(tables=frozenset(tables)), range_bytes=9000)
    assert got.keys() == tables
    for name, table in got.items():
        assert in_order(table) == in_order(whole[name])


def test_only_wanted_fields_are_given() -> None:
    files = [str(CAPTURES / "kafka4-franz-go.pcap")]
    path = "topic_data.partition_data.index"
    whole = dissect(files, ALL)["fields"]
    wanted = Wanted(tables=frozenset(("fields",)), fields=frozenset((path,)))
    some = dissect(files, wanted)["fields"].to_pylist()
    assert some == [row for row in whole.to_pylist() if row["path"] == path]
    assert some


def in_order(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
