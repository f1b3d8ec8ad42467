"""TLS from file to rows: the rows of the plaintext, also with damaged captures."""

from __future__ import annotations

import gc
import io
import pickle
import random
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from dissector import Capture, Options
from dissector.capture.columns import NEVER
from dissector.engine.reading.connection_rows import connection_rows
from dissector.engine.reading.reader import PLAINTEXT_BEGINS, Reading
from dissector.engine.reading.tls_report import WAYS_TO_KEYS, unreadable_tls
from dissector.tls.tls_connection import TlsConnection
from tests.corpus import FOLDER
from tests.default_frames import request, response
from tests.dissector.capture.handmade_packets import block, interface, pcap, section
from tests.tcp_captures import Wire, WireConnection, pcap_file
from tools.record.large import Packet
from tools.record.steady import damaged, traffic
from tools.record.tls_writer import TlsWriter

CONNECTIONS, PACKETS = 8, 3_000
PLACES = ("packet", "time_ns", "latency", "network_ms", "server_ms", "topics")
"""Columns that differ in a part of a capture, or in the packets."""
SOURCE = "kafka4-java-tls13"


@pytest.fixture(scope="module")
def keylog(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tls") / "keys.log"
    lines = (line for number in range(CONNECTIONS) for line in TlsWriter(number).lines)
    path.write_text("\n".join(lines))
    return str(path)


@cache
def packets(encrypted: bool) -> list[Packet]:
    """Steady traffic; the first connection is older than the capture."""
    return list(islice(traffic(CONNECTIONS, "kafka4-java-c*", encrypted=encrypted), PACKETS))


def read(made: Iterable[Packet], *keylogs: str, window_bytes: int = 1 << 20) -> Capture:
    options = Options(stdin=io.BytesIO(pcap(made)), window_bytes=window_bytes, keylogs=keylogs)
    return Capture(["-"], options)


def rows(capture: Capture, *, with_places: bool = True) -> list[tuple[Any, ...]]:
    table = capture.exchanges()
    left_out = [each for each in table.columns if any(place in each for place in PLACES)]
    return table.drop([] if with_places else left_out).drop("connection").rows()


def counted(capture: Capture) -> Counter[str]:
    return Counter(map(repr, rows(capture, with_places=False)))


def test_rows_equal_those_of_the_plain_traffic(keylog: str) -> None:
    plain, decrypted = counted(read(packets(False))), counted(read(packets(True), keylog))
    # Handshakes take packets, so the encrypted capture ends a little earlier.
    done = Counter({row: n for row, n in decrypted.items() if "'answered'" in row})
    assert not done - plain
    assert done.total() > 0.95 * plain.total()


@pytest.mark.long
@pytest.mark.parametrize("damage", ["", "lost", "reordered"])
def test_rows_do_not_depend_on_windows(keylog: str, damage: str) -> None:
    made = list(damaged(iter(packets(True)), damage)) if damage else packets(True)
    once = rows(read(made, keylog))
    assert once
    assert sorted(map(repr, once)) == sorted(map(repr, rows(read(made, keylog, window_bytes=4000))))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("damage", ["reordered", "doubled"])
def test_order_and_repeats_do_not_matter(keylog: str, damage: str) -> None:
    made = damaged(iter(packets(True)), damage)
    assert counted(read(made, keylog)) == counted(read(packets(True), keylog))


def test_lost_packets_cost_no_more_than_in_plain_traffic(keylog: str) -> None:
    found = []
    for encrypted in (False, True):
        capture = read(damaged(iter(packets(encrypted)), "lost"), keylog)
        found.append(sum(n for row, n in counted(capture).items() if "'answered'" in row))
    assert found[1] > 0.97 * found[0]


def test_sixty_lost_packets_in_a_row(keylog: str) -> None:
    whole = counted(read(packets(True), keylog))
    rest = [*packets(True)[:1500], *packets(True)[1560:]]
    assert (counted(read(rest, keylog)) & whole).total() > 0.9 * whole.total()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
def test_a_capture_cut_at_random(keylog: str, seed: int) -> None:
    source = random.Random(seed)
    start, end = sorted(source.sample(range(200, PACKETS), 2))
    whole, part = packets(True), packets(True)[start:end]
    expected = counted(read(packets(False)[start:end]))
    found = counted(read(part, keylog))
    done = Counter({row: n for row, n in found.items() if "'answered'" in row})
    assert not done - counted(read(whole, keylog))
    if expected.total() > 100:
        assert done.total() > 0.8 * expected.total()


def test_missing_lines_of_the_key_log(keylog: str, tmp_path: Path) -> None:
    lines = Path(keylog).read_text().splitlines()
    (tmp_path / "some.log").write_text("\n".join(lines[:4]))
    capture = read(packets(True), str(tmp_path / "some.log"))
    some = counted(capture)
    assert some
    assert not some - counted(read(packets(True), keylog))
    reading = capture.reading
    assert reading is not None
    states = [(row["speaks"], row["tls_not_decrypted"]) for row in connection_rows(reading)]
    assert ("kafka", None) in states
    assert ("tls", "no line for this connection in the key log") in states


def send_over_tls(wire: Wire, number: int, cut: int = 1448) -> WireConnection:
    """Send one exchange, in segments of that size."""
    connection, tls = wire.connect(40_000 + number).syn(), TlsWriter(number)
    flights = [
        *tls.handshake(),
        (0, tls.seal(0, request(3, 1, number))),
        (1, tls.seal(1, response(3, 1, number))),
    ]
    for side, flight in flights:
        connection.send(side, *(flight[at : at + cut] for at in range(0, len(flight), cut)))
    return connection


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 6, 50])
def test_segments_of_few_bytes(keylog: str, cut: int) -> None:
    wire = Wire()
    send_over_tls(wire, 0, cut).fin()
    options = Options(stdin=io.BytesIO(pcap_file(wire.packets)), keylogs=(keylog,))
    (exchange,) = Capture(["-"], options)
    assert (exchange.api, exchange.status, exchange.problems) == ("Metadata", "answered", [])
    before = max(p.time_ns for p in wire.packets if p.side == 0 and p.payload)
    assert exchange.request_time_ns == before, "packet of the end of the record"


def test_secrets_behind_the_packets(keylog: str, tmp_path: Path) -> None:
    wire = Wire()
    send_over_tls(wire, 0).fin()
    plain = pcap_file(wire.packets)
    (tmp_path / "a.pcap").write_bytes(plain)
    for number, lines in enumerate((b"# none\n", Path(keylog).read_bytes())):
        secrets = b"KSLT" + len(lines).to_bytes(4, "little") + lines + bytes(-len(lines) % 4)
        (tmp_path / "b.pcapng").write_bytes(section() + interface() + block(10, secrets))
        assert len(list(Capture([tmp_path / "a.pcap", tmp_path / "b.pcapng"]))) == number


def test_without_keys_rows_are_unchanged() -> None:
    wire = Wire()
    send_over_tls(wire, 0).fin()
    capture = Capture(["-"], Options(stdin=io.BytesIO(pcap_file(wire.packets))))
    taken: Counter[int] = Counter()
    capture.tap = lambda connection, side, data, length: taken.update({side: length})
    assert not list(capture)
    reading = capture.reading
    assert reading is not None
    (row,) = connection_rows(reading)
    assert (row["speaks"], row["client"], row["skipped_a"]) == ("tls", None, 0)
    assert (taken[0], taken[1]) == (row["bytes_a"], row["bytes_b"])
    assert row["tls_version"] == "TLS 1.3"
    assert row["tls_not_decrypted"] == "no key log"
    assert unreadable_tls(reading) == f"1 TLS connection, none readable: {WAYS_TO_KEYS}"


def test_an_ended_connection_without_keys_is_a_summary() -> None:
    wire = Wire()
    for port in range(100):
        _, hello = next(TlsWriter(port).handshake())
        wire.connect(50_000 + port).syn().client(hello).fin()
    wire.now_ns += 10**11
    wire.connect(60_000).syn().client(*[request(3, 1, number) for number in range(2000)])
    file = io.BytesIO(pcap_file(wire.packets))
    capture = Capture(["-"], Options(stdin=file, window_bytes=1 << 16))
    assert len(list(capture)) == 2000
    assert capture.reading is not None
    assert len(capture.reading.decryption) == 100
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, TlsConnection)]


def test_the_tap_gets_the_plaintext(keylog: str) -> None:
    wire = Wire()
    send_over_tls(wire, 0)
    options = Options(
        stdin=io.BytesIO(pcap_file(wire.packets)), keylogs=(keylog,), window_bytes=300
    )
    capture, taken = Capture(["-"], options), {0: b"", 1: b""}

    def take(connection: int, side: int, data: bytes | None, length: int) -> None:
        if length == PLAINTEXT_BEGINS:
            taken.update({0: b"", 1: b""})
        else:
            taken[side] += data or b""

    capture.tap = take
    assert len(list(capture)) == 1
    assert taken == {0: request(3, 1, 0), 1: response(3, 1, 0)}


def test_a_tap_gets_no_more_of_connections_that_it_leaves() -> None:
    wire = Wire()
    both = [wire.connect(port).syn() for port in (50_000, 50_001)]
    for number in range(20):
        for connection in both:
            connection.client(request(3, 1, number))
    options = Options(stdin=io.BytesIO(pcap_file(wire.packets)), window_bytes=300)
    capture, taken, left = Capture(["-"], options), {0: b"", 1: b""}, set[int]()

    def take(connection: int, side: int, data: bytes | None, length: int) -> None:
        taken[connection] += data or b""
        if connection == 0:
            left.add(connection)

    capture.tap, capture.untapped = take, left
    assert len(list(capture)) == 40
    sent = b"".join(request(3, 1, number) for number in range(20))
    assert taken[1] == sent
    assert taken[0]
    assert taken[0] != sent
    assert sent.startswith(taken[0])


def test_a_capture_beginning_inside_a_record(keylog: str) -> None:
    wire, tls = Wire(), TlsWriter(0)
    connection = wire.connect()
    flights = list(tls.handshake())
    assert flights
    for number in range(6):
        connection.client(*halves(tls.seal(0, request(3, 1, number, topics=[{"name": "t" * 90}]))))
        connection.broker(*halves(tls.seal(1, response(3, 1, number))))
    options = Options(stdin=io.BytesIO(pcap_file(wire.packets[1:])), keylogs=(keylog,))
    found = list(Capture(["-"], options))
    assert {each.correlation_id for each in found if each.status == "answered"} >= {1, 2, 3, 4, 5}


def halves(data: bytes) -> tuple[bytes, bytes]:
    return data[: len(data) // 2], data[len(data) // 2 :]


def test_a_state_without_secrets_continues(keylog: str) -> None:
    """As in the pipeline, between files."""
    wire = Wire()
    send_over_tls(wire, 0)
    secret = bytes.fromhex(TlsWriter(0).lines[2].split()[2])
    first = Reading([], Options(keylogs=(keylog,)))
    second = Reading([], Options(keylogs=(keylog,)))
    source = Reading(["-"], Options(stdin=io.BytesIO(pcap_file(wire.packets)), window_bytes=200))
    exchanges, windows = 0, source.source.windows()
    for number, segments in enumerate(windows):
        reading = first if number < 4 else second
        if number == 4:
            state = pickle.dumps((first.streams, first.decryption, first.correlator))
            assert secret not in state
            assert TlsWriter(0).lines[2].split()[2].encode() not in state
            second.resume(*pickle.loads(state))
        exchanges += sum(len(each.exchanges) for each in reading.advance([segments]))
    exchanges += sum(len(each.exchanges) for each in second.finish())
    assert exchanges == 1


def test_a_corpus_capture_read_in_small_windows() -> None:
    path, keys = FOLDER / f"{SOURCE}.pcap.gz", (str(FOLDER / f"{SOURCE}.keylog"),)
    sizes = (1 << 20, 1000)
    once, often = (
        rows(Capture([path], Options(keylogs=keys, window_bytes=size))) for size in sizes
    )
    assert once == often
    assert len(once) == 19


@pytest.mark.parametrize("first", [1, None])
def test_a_key_log_that_grows(tmp_path: Path, first: int | None) -> None:
    """Its lines, even the first ones, follow the packets of a live capture."""
    wire, growing = Wire(), tmp_path / "growing.log"
    send_over_tls(wire, 0)
    send_over_tls(wire, 1)
    growing.write_text("" if first is None else "\n".join(TlsWriter(first).lines) + "\n")
    options = Options(stdin=io.BytesIO(pcap_file(wire.packets)), window_bytes=200)
    segments = Reading(["-"], options).source.windows()
    reading = Reading(["-"], Options(live=True, keylogs=(str(growing),)))
    found = []
    for number, window in enumerate(segments):
        if number == 8:
            with growing.open("a") as file:
                file.write("\n".join(TlsWriter(0).lines) + "\n")
                file.write("\n".join(TlsWriter(1).lines))
        before = reading.low_watermark()
        found.append((before, sum(len(each.exchanges) for each in reading.advance([window]))))
    # The first connection needs no packet after its lines.
    assert found[8][1] == 1
    assert [before < NEVER for before, _ in found[4:10]] == [True] * 5 + [False]
    assert sum(count for _, count in found) == 2
