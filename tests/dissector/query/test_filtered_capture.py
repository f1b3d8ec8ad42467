"""Captures in Python: the same rows from every kind of input, filters, and fed packets."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import dpkt
import polars
import pytest

from dissector.cli import main
from dissector.errors import CaptureError, FilterError, UsageError
from dissector.public import Capture, dissect, open_capture
from dissector.query.lazy_frames import display_filter
from tests import tcp_captures
from tests.dissector.cli import cli_traffic
from tests.waiting import PATIENCE_S

DEMO = Path(__file__).parents[3] / "captures" / "demo.pcap"
TLS = DEMO.with_name("kafka4-java-tls13.pcap.gz")
FILTER = "api == Produce and latency_ms > 5"


@cache
def content() -> bytes:
    return DEMO.read_bytes()


@cache
def expected() -> polars.DataFrame:
    return rows(open_capture(DEMO))


def rows(capture: Capture) -> polars.DataFrame:
    """Return the exchanges without the name of the file."""
    return capture.exchanges().drop("capture")


def pairs(data: bytes) -> Iterator[tuple[float | Decimal, bytes]]:
    return iter(dpkt.pcap.UniversalReader(io.BytesIO(data)))


@pytest.mark.parametrize(
    "source",
    [
        lambda: content(),
        lambda: bytearray(content()),
        lambda: memoryview(content()),
        lambda: [DEMO],
        lambda: io.BytesIO(content()),
        lambda: io.BufferedReader(io.BytesIO(content())),  # type: ignore[arg-type]
    ],
)
def test_every_kind_of_input_gives_the_same_rows(source: Any) -> None:
    capture = open_capture(source())
    assert rows(capture).equals(expected())
    assert rows(capture).equals(expected()), "it can be read again"


def test_a_file_object_has_its_name_and_stays_open() -> None:
    with DEMO.open("rb") as file:
        assert open_capture(file).exchanges()["capture"].unique().to_list() == [str(DEMO)]
        assert not file.closed


def test_a_file_object_is_read_from_its_position() -> None:
    file = io.BytesIO(b"before" + content())
    file.seek(6)
    assert rows(open_capture(file)).equals(expected())


def test_a_pipe_can_be_read_once() -> None:
    class Unseekable(io.BytesIO):
        def seekable(self) -> bool:
            return False

    capture = open_capture(Unseekable(content()))
    assert rows(capture).equals(expected())
    with pytest.raises(CaptureError, match="<file>: not a capture: empty file"):
        capture.exchanges()


def test_parts_of_different_kinds_are_one_capture(tmp_path: Path) -> None:
    sent = cli_traffic.shop().packets
    first, second = (
        tcp_captures.write(tmp_path / name, part)
        for name, part in (("1.pcap", sent[:20]), ("2.pcapng", sent[20:]))
    )
    whole = rows(open_capture(tcp_captures.write(tmp_path / "a.pcap", sent)))
    assert rows(open_capture(first, Path(second).read_bytes())).equals(whole)
    parts = [Path(first).read_bytes(), Path(second).read_bytes()]
    both = open_capture(parts)
    assert both.paths == ["<bytes>", "<bytes> 2"]
    assert rows(both).equals(whole)


def test_compressed_bytes_with_a_key_log() -> None:
    keylog = TLS.with_name("kafka4-java-tls13.keylog")
    from_bytes = open_capture(TLS.read_bytes(), keylogs=[keylog])
    assert rows(from_bytes).equals(rows(open_capture(TLS, keylogs=[keylog])))
    assert len(rows(from_bytes)) > 0


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (io.StringIO("text"), "opened with mode 'rb'"),
        (7, "not int; .feed() of a capture takes packets"),
        ([(1.5, b"packet")][0:0] or [3.5], "not float"),
    ],
)
def test_other_objects_are_refused(source: Any, what: str) -> None:
    with pytest.raises(UsageError) as error:
        open_capture(source)
    assert what in str(error.value)


def test_a_closed_file_is_an_error() -> None:
    file = io.BytesIO(content())
    file.close()
    with pytest.raises(UsageError, match="the file is closed"):
        open_capture(file)
    later = io.BytesIO(content())
    capture = open_capture(later)
    later.close()
    with pytest.raises(CaptureError, match="closed file"):
        capture.exchanges()


def test_all_methods_give_the_filtered_rows_of_the_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def of_command(name: str, *more: str) -> polars.DataFrame:
        out = tmp_path / f"{name}.parquet"
        assert main([name, str(DEMO), "-Y", FILTER, "-T", "parquet", "-o", str(out), *more]) == 0
        return polars.read_parquet(out)

    capture = open_capture(DEMO, filter=FILTER)
    exchanges = capture.exchanges()
    assert exchanges.equals(of_command("pairs"))
    assert 0 < len(exchanges) < len(expected())
    assert [each.row() for each in capture] == exchanges.to_dicts()
    assert capture.streams().equals(of_command("streams"))
    assert capture.records().equals(of_command("records").select(capture.records().columns))
    fields = of_command("dissect")
    assert capture.fields().cast({"text": polars.String()}).to_dicts() == fields.to_dicts()
    assert sum(part.height for part in capture.field_batches()) == fields.height
    stats = capture.stats()
    assert stats["apis"].select("api", "count").rows() == [("Produce", len(exchanges))]
    assert stats["capture"]["packets"].to_list() == [1163]
    capsys.readouterr()


def test_without_a_filter_the_tables_are_complete() -> None:
    capture = open_capture(DEMO)
    assert capture.stats()["apis"]["count"].sum() == len(expected())
    assert len(capture.streams()) == 44


def test_records_are_filtered_by_their_own_columns() -> None:
    capture = open_capture(DEMO, filter='value contains "lamp" and offset >= 0')
    values = capture.records()["value"].to_list()
    assert values
    assert all(b"lamp" in value for value in values)
    with pytest.raises(FilterError):
        capture.exchanges()


def test_a_filter_is_checked_immediately() -> None:
    with pytest.raises(FilterError, match="character"):
        open_capture(DEMO, filter="api ==")
    assert len(list(dissect(content(), filter="api == Produce"))) == 53


def test_a_filter_of_a_filtered_capture_narrows_it() -> None:
    with open_capture() as capture:
        produced = capture.filter("api == Produce or api == Fetch").filter("api == Produce")
        assert repr(produced).endswith(
            "filter '(api == Produce or api == Fetch) and (api == Produce)'>"
        )
        capture.feed(pairs(content()))
        with produced:
            assert len(produced.exchanges()) == 53
            assert produced.filter('value contains "lamp"').records().height > 0
        with pytest.raises(FilterError, match="character"):
            produced.filter("api ==")
        assert rows(capture).equals(expected()), "it is as it was, and its packets are there"
        assert "1,163 packets read, 44 TCP connections" in repr(capture)
    with pytest.raises(UsageError, match="closed"):
        produced.exchanges()


def test_export_writes_the_packets_of_matching_exchanges(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    with open_capture(filter="api == Produce") as fed:
        fed.feed(pairs(content()))
        counts = fed.export(part)
        assert (counts.exchanges, counts.differing) == (53, 0)
        again = open_capture(part)
        assert len(again.exchanges()) == 53
        assert f"{counts.packets:,} packets read" in repr(again)
        assert 53 < counts.packets < counts.packets_read == 1163
    capture = open_capture(part).filter("api == Produce")
    for whole in (True, False):
        assert capture.export(tmp_path / "again.pcapng", connections=whole).exchanges == 53
    assert [each.name for each in tmp_path.iterdir() if "part" in each.name] == ["part.pcapng"]
    before = part.read_bytes()
    with pytest.raises(UsageError, match="would overwrite it"):
        capture.export(part)
    assert part.read_bytes() == before
    for wrong in (tmp_path, tmp_path / "missing" / "a.pcapng", "/dev/null"):
        with pytest.raises(UsageError, match=r"is no file|No such file"):
            capture.export(wrong)
    with pytest.raises(UsageError, match="several times"):
        open_capture("-").export(tmp_path / "no.pcapng")


def test_filtered_records_keep_their_headers(tmp_path: Path) -> None:
    chosen, out = 'topic == "demo.orders" and offset < 20', tmp_path / "records.parquet"
    whole = open_capture(DEMO).records()
    expected = whole.filter((polars.col("topic") == "demo.orders") & (polars.col("offset") < 20))
    assert expected["headers"].list.len().n_unique() > 1
    assert open_capture(DEMO, filter=chosen).records().equals(expected)
    assert main(["records", str(DEMO), "-Y", chosen, "-T", "parquet", "-o", str(out)]) == 0
    assert polars.read_parquet(out)["headers"].to_list() == expected["headers"].to_list()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("chosen", [None, "api in {Produce, Fetch}"])
def test_lazy_frames_have_the_rows_of_the_tables(chosen: str | None) -> None:
    col = polars.col
    orders = col("topic") == "demo.orders"
    capture = open_capture(DEMO, filter=chosen)
    whole = {name: getattr(capture, name)() for name in ("exchanges", "records", "fields")}
    for table, pushed, predicate in (
        ("exchanges", 'api == "Produce"', col("api") == "Produce"),
        ("exchanges", "latency_ms > 4.999000", col("latency_ms") > 5),
        (
            "exchanges",
            "request_bytes >= 100",
            (col("request_bytes") >= 100) & col("api").is_not_null(),
        ),
        ("exchanges", None, (col("api") == "Produce") | (col("latency_ms") < 3)),
        ("exchanges", None, col("client_id") == "a\\b"),
        ("exchanges", None, col("latency_ms") * 2 > 7),
        (
            "records",
            'topic == "demo.orders" and offset < 20',
            orders & (col("offset") < 20),
        ),
        ("records", None, col("value").is_not_null()),
        ("fields", 'api == "Produce"', (col("api") == "Produce") & (col("value") > 3)),
    ):
        assert display_filter(table, predicate) == pushed
        expected = whole[table].filter(predicate)
        lazy = capture.scan(table).filter(predicate)
        assert lazy.collect().equals(expected)
        assert lazy.select("api").collect().equals(expected.select("api"))
        assert capture.scan(table).head(7).filter(predicate).collect().height <= 7
    requests = capture.scan().select(packet="request_packet")
    both = capture.scan("records").join(requests, on="packet")
    assert both.collect().height > 0
    assert capture.scan("records").select(polars.len()).collect().item() == whole["records"].height
    assert capture.scan().head(3).collect().equals(whole["exchanges"].head(3))
    with pytest.raises(
        UsageError,
        match="not 'record'; did you mean records",
    ):
        capture.scan("record")  # type: ignore[arg-type]


def test_a_capture_closes_at_the_end_of_its_block() -> None:
    with open_capture() as capture:
        capture.feed(pairs(content()))
        assert rows(capture).equals(expected())
    with pytest.raises(UsageError, match="closed"):
        capture.exchanges()
    with pytest.raises(UsageError, match="closed"):
        capture.feed((0, b""))


def test_completion_offers_public_names() -> None:
    offered = [name for name in dir(open_capture(DEMO)) if not name.startswith("_")]
    assert {"exchanges", "records", "streams", "stats", "fields", "feed", "follow"} <= set(offered)
    assert not {"tap", "known_of", "parts_of", "windows"} & set(offered)
    page = (DEMO.parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    attributes = {"filter_text", "options", "paths", "reading"}
    assert [name for name in offered if name not in page and name not in attributes] == []


def test_times_as_datetimes() -> None:
    exchange = next(iter(open_capture(DEMO)))
    assert exchange.request_time_ns is not None
    assert exchange.request_time == datetime.fromtimestamp(0, UTC) + timedelta(
        microseconds=exchange.request_time_ns // 1000
    )
    unanswered = next(iter(open_capture(DEMO, filter="status == no_response")))
    assert unanswered.response_time is None


def test_without_fed_packets() -> None:
    with open_capture() as capture:
        assert capture.exchanges().columns[1:] == expected().columns
        assert len(capture.exchanges()) == 0
        assert repr(capture) == "<Capture without packets>"


def test_fed_packets_follow_those_of_the_files(tmp_path: Path) -> None:
    sent = cli_traffic.shop().packets
    whole = tcp_captures.write(tmp_path / "a.pcap", sent)
    first = tcp_captures.write(tmp_path / "1.pcap", sent[:20])
    with open_capture(first) as capture:
        before = len(capture.exchanges())
        capture.feed(list(pairs(Path(whole).read_bytes()))[20:])
        assert before < len(capture.exchanges())
        assert rows(capture).equals(rows(open_capture(whole)))


def test_exchanges_are_yielded_as_packets_arrive() -> None:
    fed = iter(list(pairs(content())))
    with open_capture(filter="api == Produce") as capture, closing(capture.follow()) as following:  # type: ignore[type-var]
        feeder: threading.Thread | None = None
        seen = threading.Event()

        def feed() -> None:
            """Feed packets until the first exchange is yielded, then the rest."""
            for packet in fed:
                capture.feed(packet)
                if seen.is_set():
                    break
            assert seen.wait(PATIENCE_S), "an exchange comes before the end"
            capture.feed(fed)
            capture.stop()

        feeder = threading.Thread(target=feed)
        feeder.start()
        first = next(following)
        seen.set()
        others = list(following)
        feeder.join()
        assert first.api == "Produce"
        assert len(others) == 52
        assert len(capture.exchanges()) == 53


@pytest.mark.parametrize(
    ("time", "time_ns"),
    [
        (1700000000, 1700000000 * 10**9),
        (1700000000.123456, 1700000000123456000),
        (Decimal("1700000000.123456789"), 1700000000123456789),
        (datetime(2023, 11, 14, 22, 13, 20, 5, tzinfo=UTC), 1700000000000005000),
        (datetime(2023, 11, 14, 22, 13, 20), 1700000000 * 10**9),
    ],
)
def test_times_of_packets(time: Any, time_ns: int) -> None:
    (request, *_) = (data for _, data in pairs(content()))
    with open_capture() as capture:
        capture.feed((time, request))
        assert capture.streams()["first_time_ns"].to_list() == [time_ns]


@pytest.mark.parametrize(
    "packet",
    [
        b"bytes",
        7,
        "text",
        [7],
        (1.0, "text"),
        ("now", b""),
        (-1, b""),
        (1e300, b""),
        (float("nan"), b""),
        (Decimal("inf"), b""),
    ],
)
def test_other_objects_are_not_packets(packet: Any) -> None:
    with open_capture() as capture, pytest.raises(UsageError):
        capture.feed(packet)


def test_link_types() -> None:
    frames = [(time, data[14:]) for time, data in pairs(content())]
    with open_capture() as capture:
        capture.feed(frames, link=101)
        assert rows(capture).equals(expected())


def test_many_packets_are_stored_in_a_private_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.query.packet_spool._MEMORY_BYTES", 1000)
    with open_capture() as capture:
        capture.feed(pairs(content()))
        assert rows(capture).equals(expected())


def test_a_live_pipe_is_read_as_packets_arrive() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb", buffering=0) as file, os.fdopen(write_end, "wb") as pipe:
        pipe.write(content()[:50_000])  # a pipe holds 64 KiB
        pipe.flush()
        following = iter(open_capture(file))
        assert next(following).api, "it comes before the end"
        pipe.close()
        assert len(list(following)) > 20
