"""The documented keys identify a row, and are the same for any division of a collection."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from pipeline import KEYS, TableOptions
from pipeline.jobs.local_job import dissect
from tests.pipeline.split_captures import imperfect_packets
from tests.tcp_captures import write

ROOT = Path(__file__).parents[3]
CAPTURES = ROOT / "captures"
OPTIONS = TableOptions(tables=frozenset(KEYS))


def keys_in(files: list[str], range_bytes: int) -> dict[str, Counter[tuple[object, ...]]]:
    """Return the keys of all rows, by tables."""
    tables = dissect(files, OPTIONS, range_bytes=range_bytes)
    return {
        name: Counter(tuple(row.values()) for row in tables[name].select(list(key)).to_pylist())
        for name, key in KEYS.items()
    }


@pytest.mark.parametrize(
    "names",
    [
        ["demo.pcap", "kafka4-errors.pcap"],
        ["kafka39-kafka-python-as-0.10.0.pcap"],
        ["kafka4-franz-go.pcap", "kafka39-librdkafka-transactions.pcap"],
    ],
)
def test_keys_of_real_traffic_are_unique(names: list[str]) -> None:
    files = [str(CAPTURES / name) for name in names]
    whole = keys_in(files, 1 << 30)
    assert all(rows and max(rows.values()) == 1 for rows in whole.values())
    assert keys_in(files, 50_000) == whole


def test_keys_with_losses_and_repeated_packets_are_unique(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.pcap", imperfect_packets(2))]
    whole = keys_in(files, 1 << 30)
    assert all(max(whole[name].values()) == 1 for name in ("exchanges", "messages", "connections"))
    assert keys_in(files, 5_000) == whole


def test_the_keys_are_documented() -> None:
    text = (ROOT / "docs/pipeline.md").read_text()
    for table, key in KEYS.items():
        row = ", ".join(f"`{name}`" for name in key)
        assert re.search(rf"^\| `{table}` \| {re.escape(row)} \|$", text, re.MULTILINE), table
