"""A capture with the request log of its broker: each exchange gets its own account."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dissector.cli import main
from dissector.public import open_capture
from tests.corpus import FOLDER

LOG = FOLDER / "kafka4-request-log.log.gz"


def test_latency_is_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The messages of a log as a capture that lacks two connections."""
    copy, out = tmp_path / "copy.pcapng", tmp_path / "out.parquet"
    chosen = "not connection in {3, 4}"
    assert main(["export", str(LOG), "-Y", chosen, "-o", str(copy)]) == 0
    capsys.readouterr()
    assert main(["pairs", str(copy), "--with", str(LOG), "-T", "parquet", "-o", str(out)]) == 0
    logged, joined = open_capture(LOG).exchanges(), pl.read_parquet(out)
    left_out = logged.filter(pl.col("connection").is_in([3, 4])).height
    said = capsys.readouterr().err
    assert f"{joined.height} exchanges in both; 0 only in the capture, {left_out} only" in said
    keys = ["client", "broker", "api", "correlation_id", "response_time_ns"]
    both = joined.join(logged, on=keys, suffix="_logged")
    assert both.height == joined.height
    for name in ("queue_ms", "remote_ms", "principal", "broker_ms"):
        assert both[name].to_list() == both[f"{name}_logged"].to_list()
    assert (both["outside_ms"] - (both["latency_ms"] - both["broker_ms"])).abs().max() < 1e-6


def test_a_capture_is_no_log(capsys: pytest.CaptureFixture[str]) -> None:
    demo = str(FOLDER / "demo.pcap")
    assert main(["pairs", demo, "--with", str(FOLDER / "kafka4-denied.pcap")]) == 2
    assert "not a request log of a broker" in capsys.readouterr().err
