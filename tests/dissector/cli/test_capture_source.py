from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import polars
import pytest

from dissector.cli.capture_source import source
from dissector.cli.declared.reading_options import ReadingOptions
from dissector.engine.exchanges import exchange_facts
from dissector.engine.reading.capture import Window
from dissector.engine.reading.tls_report import WAYS_TO_KEYS
from dissector.errors import FilterError
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run


def reading(path: Path, **options: Any) -> ReadingOptions:
    return ReadingOptions(captures=[str(path)], **options)


def test_options_of_a_source(shop: Path) -> None:
    chosen = source(reading(shop, ports=(9092,), max_frame_bytes=1 << 20), "api == Produce")
    assert chosen.capture.options.ports == frozenset({9092})
    assert chosen.capture.options.max_frame_bytes == 1 << 20
    assert [exchange.correlation_id for exchange in chosen.exchanges()] == [2, 3, 1]


def test_all_and_filtered_exchanges(shop: Path) -> None:
    chosen = source(reading(shop), "not api == Produce")
    passed = [chosen.passes(exchange) for window in chosen.windows() for exchange in window]
    assert (len(passed), passed.count(True)) == (9, 6)


def test_damage_is_reported_once_and_counted(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil\x1b[2J.pcap"
    path.write_bytes(shop.read_bytes()[:-1])
    chosen = source(reading(path))
    assert len(list(chosen.exchanges())) == 9
    assert chosen.problems == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"kafkashark: {tmp_path}/evil\\x1b[2J.pcap: cut off: ")
    assert err.count("\n") == 1


def test_an_invalid_filter_is_an_error() -> None:
    with pytest.raises(FilterError):
        source(reading(Path("a")), "api ==")


def test_fields_release_each_window_before_the_next(shop: Path) -> None:
    few = source(reading(shop, jobs=1))
    few.capture.options.window_bytes = 600
    held: list[bool] = []
    few.capture.windows = watched(few.capture.windows, held)  # type: ignore[method-assign]
    for table in few.field_tables(False):
        del table
    assert len(held) > 3
    assert not any(held)


def watched(read: Callable[..., Iterator[Window]], held: list[bool]) -> Any:
    """Wrap a reader of windows; `held` gets whether each window outlives the next reading."""

    def windows(**options: bool) -> Iterator[Window]:
        before: ref[Any] | None = None
        for window in read(**options):
            if before is not None:
                held.append(before() is not None)
            before = ref(window.exchanges.data)
            yield window
            del window

    return windows


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "text",
    [
        "api == Produce and response.responses.partition_responses.error_code == 6",
        "request.acks == 0 or topic == orders and latency_ms",
        "problem or not status == answered",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["pairs", "-T", "ndjson"],
        ["pairs", "-T", "ndjson", "--bodies"],
        ["pairs", "-T", "csv", "--sort", "latency_ms"],
        ["records", "-T", "ndjson"],
        ["records", "-T", "table"],
        ["stats", "-T", "ndjson"],
        ["dissect", "-T", "ndjson"],
        ["dissect", "-T", "parquet"],
    ],
)
def test_a_filter_gives_the_same_rows_from_columns_and_objects(
    good: Run,
    shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    text: str,
) -> None:
    outputs = []
    for number, worthwhile in enumerate((1, 10**9)):
        monkeypatch.setattr(exchange_facts, "MIN_BULK_EXCHANGES", worthwhile)
        file = tmp_path / f"{number}.parquet"
        to_file = ["-o", file] if "parquet" in command else []
        out = good(*command, shop, "-Y", text, *to_file).out
        outputs.append(polars.read_parquet(file).rows() if to_file else out)
    assert outputs[0] == outputs[1]
    assert outputs[0]


@pytest.mark.parametrize("command", ["pairs", "dissect", "records"])
def test_a_capture_without_kafka_is_reported(run: Run, tmp_path: Path, command: str) -> None:
    wire = tcp_captures.Wire()
    wire.connect().syn().client(cli_traffic.HTTP[0]).broker(cli_traffic.HTTP[1])
    wire.connect(port=40001).syn().client(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    done = run(command, tcp_captures.write(tmp_path / "a.pcap", wire.packets))
    assert done.status == 0
    assert done.err == f"kafkashark: 1 TLS connection, none readable: {WAYS_TO_KEYS}\n"
