"""A user's program with the methods of a capture: mypy, strict, checks it with the other tests."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest

from kafkashark import Capture, DecodeError, Exchange, UsageError, api, codec, open_capture

DEMO = Path(__file__).parents[2] / "captures" / "demo.pcap"


def test_types_of_a_capture_hold(tmp_path: Path) -> None:
    with open_capture(DEMO, filter="api in {Produce, Fetch}") as capture:
        narrower: Capture = capture.filter("api == Produce")
        exchange: Exchange = next(iter(narrower))
        assert exchange.api == "Produce"
        tables: dict[str, polars.DataFrame] = capture.stats(by="api")
        assert tables["api"]["api"].to_list() == ["Fetch", "Produce"]
        lazy: polars.LazyFrame = narrower.scan("records").select("offset")
        offsets: polars.DataFrame = lazy.collect()
        assert offsets.columns == ["offset"]
        packets: int = narrower.export(tmp_path / "part.pcapng", connections=True).packets
        assert packets > len(narrower.exchanges())
        lag: polars.DataFrame = open_capture(DEMO).groups(interval=10)["lags"]
        assert lag.height > 0
        rows: int = capture.upgrade("4.4", clients=True).height
        assert rows >= 0


def test_wrong_types_are_refused_by_mypy_and_at_run_time() -> None:
    """Each comment is an error of mypy if the call is right for it."""
    capture = open_capture(DEMO)
    with pytest.raises(UsageError):
        capture.scan("record")  # type: ignore[arg-type]
    with pytest.raises(DecodeError):
        codec("Produce", 9, "answer")  # type: ignore[arg-type]
    known = api("Produce")
    assert known is not None
    assert repr(known).startswith("<Api Produce, key 0, versions 0-")
