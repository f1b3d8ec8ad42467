"""Short connections: valid Kafka, abandoned, and copied with new addresses and times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars
import pytest

from kafkashark import open_capture
from tools.record import generations
from tools.record.generations import LIFE_NS, SIDE_BY_SIDE, WEB_CLIENTS, write
from tools.record.steady import BEGIN_NS


@pytest.fixture(scope="module", autouse=True)
def few_generations() -> Iterator[None]:
    """Make few generations, to be copied more often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generations, "DIFFERENT", 3)
        patch.setattr(generations, "CORPUS", "kafka4-sarama*")
        yield


def streams(
    path: Path, packets: int, *, lost: bool = False, http: bool = False
) -> polars.DataFrame:
    write(path, packets, lost=lost, http=http)
    return open_capture(str(path)).streams()


def generation_sizes(found: polars.DataFrame) -> list[int]:
    """Return the numbers of connections that began together."""
    return ((found["first_time_ns"] - BEGIN_NS) // LIFE_NS).rle().struct.field("len").to_list()


def test_connections_last_40_ms_and_end_without_fin(tmp_path: Path) -> None:
    found = streams(tmp_path / "short.pcap", 10_000)
    assert found["packets_a"].sum() + found["packets_b"].sum() == 10_000
    assert found["speaks"].unique().to_list() == ["kafka"]
    assert found["ended"].null_count() == len(found)
    assert found["gaps_a"].sum() + found["gaps_b"].sum() == 0
    assert (found["last_time_ns"] - found["first_time_ns"]).max() < LIFE_NS
    *full, _ = generation_sizes(found)
    assert set(full) == {SIDE_BY_SIDE}
    assert len(full) > 3  # also copies
    assert found["a"].n_unique() == len(found)


def test_every_exchange_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "short.pcap"
    write(path, 10_000)
    found = open_capture(str(path)).exchanges()
    last = SIDE_BY_SIDE * 10
    assert len(found.filter(polars.col("status") == "orphan")) == 0
    assert found["api"].n_unique() > 10
    assert len(found.filter(polars.col("status") == "unanswered")) < last


def test_lost_packets_leave_gaps(tmp_path: Path) -> None:
    found = streams(tmp_path / "lost.pcap", 10_000, lost=True)
    assert 9_850 < found["packets_a"].sum() + found["packets_b"].sum() < 9_950
    assert found["gaps_a"].sum() + found["gaps_b"].sum() > 20


def test_most_packets_are_http(tmp_path: Path) -> None:
    found = streams(tmp_path / "http.pcap", 10_000, http=True)
    packets = found["packets_a"] + found["packets_b"]
    is_web = found["b"].str.ends_with(":8080")
    assert packets.filter(is_web).sum() / packets.sum() == pytest.approx(0.95, abs=0.03)
    assert "kafka" not in found.filter(is_web)["speaks"].to_list()
    assert found.filter(~is_web)["speaks"].unique().to_list() == ["kafka"]
    assert generation_sizes(found)[0] == 1 + WEB_CLIENTS
