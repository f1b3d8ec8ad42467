from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import dissector
from dissector import (
    CaptureError,
    DecodeError,
    Exchange,
    UsageError,
    codec,
    dissect,
    open_capture,
)
from tests import tcp_captures
from tests.dissector.cli import cli_traffic


@pytest.fixture
def shop(tmp_path: Path) -> str:
    return tcp_captures.write(tmp_path / "shop.pcap", cli_traffic.shop().packets)


def test_codecs() -> None:
    heartbeat = codec(12, 0, "request")
    assert repr(heartbeat) == "<Codec Heartbeat v0 request, 3 fields>"
    assert repr(codec("Heartbeat", 0, "response")) == "<Codec Heartbeat v0 response, 1 field>"
    assert 'GenerationId</th><td style="text-align:left">int32<' in heartbeat._repr_html_()
    data = heartbeat.build({"group_id": "g", "generation_id": 7, "member_id": "m"})
    assert data == b"\0\1g\0\0\0\7\0\1m"
    assert heartbeat.parse(data).generation_id == 7


@pytest.mark.parametrize(
    ("key", "version", "kind"), [(999, 0, "request"), (0, 99, "request"), (0, 9, "answer")]
)
def test_an_unknown_codec(key: int, version: int, kind: str) -> None:
    with pytest.raises(DecodeError):
        codec(key, version, kind)  # type: ignore[arg-type]


def test_dissect(shop: str) -> None:
    exchanges = list(dissect(shop))
    assert all(isinstance(exchange, Exchange) for exchange in exchanges)
    produce = exchanges[1]
    assert (produce.api, produce.status, produce.latency_ms) == ("Produce", "answered", 2.0)
    assert produce.request is not None
    assert produce.request.body is not None
    assert produce.request.body.topic_data[0].name == "orders"
    assert produce.request.body.topic_data[0].partition_data[0].records == cli_traffic.PRODUCED


def test_ports(shop: str) -> None:
    assert list(dissect(shop, ports=[9093])) == []
    assert len(list(dissect(shop, ports=[9092]))) == 9


def test_a_capture_as_tables(shop: str) -> None:
    capture = open_capture(shop)
    table = capture.exchanges()
    assert table.height == 9
    assert table["status"].to_list().count("answered") == 6
    assert table.select("api", "errors").row(1) == ("Produce", ["NOT_LEADER_OR_FOLLOWER"])
    assert capture.records()["value"].to_list()[0] == b'{"lamp": 1}'
    assert sum(part.height for part in capture.batches()) == 9


def test_a_capture_can_be_read_again(shop: str) -> None:
    capture = open_capture(Path(shop))
    assert [e.correlation_id for e in capture] == [e.correlation_id for e in capture]


def test_standard_input(shop: str) -> None:
    capture = open_capture("-", stdin=io.BytesIO(Path(shop).read_bytes()))
    assert len(list(capture)) == 9


def test_several_files(tmp_path: Path) -> None:
    sent = cli_traffic.shop().packets
    parts = [
        tcp_captures.write(tmp_path / "1.pcap", sent[:20]),
        tcp_captures.write(tmp_path / "2.pcapng", sent[20:]),
    ]
    assert len(list(dissect(*parts))) == 9


def test_larger_frames_are_skipped(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    long = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 1, group_id="g" * 200_000)
    wire.connect().syn().client(*tcp_captures.pieces(long, range(0, 210_000, 60_000)))
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    (exchange,) = open_capture(path, max_frame_bytes=1000)
    assert exchange.request is not None
    assert exchange.request.body is None
    assert exchange.problems


def test_a_file_other_than_a_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no such file"):
        list(dissect(tmp_path / "missing"))


def test_repr_of_exchanges_and_captures(shop: str) -> None:
    capture = open_capture(shop)
    assert repr(capture) == f"<Capture {shop}>"
    produce = list(capture)[1]
    assert repr(produce) == (
        "<Exchange Produce v9, id 2, 10.0.0.1:50000 -> 10.0.0.2:9092, answered, 2.000 ms, "
        "packet 6 and 8>"
    ).replace("packet 6 and 8", f"packet {produce.request_packet} and {produce.response_packet}")
    assert all(repr(each).startswith("<Exchange ") for each in capture)


@pytest.mark.parametrize(
    ("captures", "ports", "what"),
    [
        ([7], (), "not int"),
        ([[["a.pcap"]]], (), "not list"),
        (["a.pcap"], "9092", "ports=[9092]"),
        (["a.pcap"], 9092, "ports=[9092]"),
    ],
)
def test_wrong_arguments_are_errors(captures: Any, ports: Any, what: str) -> None:
    with pytest.raises(UsageError) as error:
        open_capture(*captures, ports=ports)
    assert what in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("produce", 9, "request"), "no API has the name 'produce'; did you mean Produce?"),
        ((999, 0, "request"), "no API has the key 999"),
        ((0, 99, "request"), "Produce has no version 99; known are 0-13"),
    ],
)
def test_the_error_of_a_wrong_codec_has_no_position(arguments: Any, what: str) -> None:
    with pytest.raises(DecodeError) as error:
        codec(*arguments)
    assert str(error.value).endswith(what)


def test_public_names_are_listed() -> None:
    assert {"open_capture", "dissect", "codec", "Exchange"} <= set(dir(dissector))
    assert not {"Any", "annotations", "import_module"} & set(dir(dissector))
