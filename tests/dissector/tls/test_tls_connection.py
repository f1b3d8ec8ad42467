from __future__ import annotations

import pickle
import random
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.tls.key_log import KeyLog
from dissector.tls.tls_connection import TlsConnection
from dissector.tls.tls_summary import Reason
from tests.dissector.tls.endpoints import (
    CLIENT,
    SERVER,
    SERVER_NAME,
    Flight,
    Party,
    content,
    decrypt,
    pieces,
)
from tests.dissector.tls.maker import (
    CHANGE_CIPHER_SPEC,
    DATA,
    END_OF_EARLY_DATA,
    FINISHED,
    HANDSHAKE,
    Maker,
    message,
    record,
)
from tests.example_counts import examples

SOURCE = random.Random(17)
MESSAGES = [
    (0, SOURCE.randbytes(40)),
    (1, SOURCE.randbytes(300)),
    (0, SOURCE.randbytes(40_000)),
    (1, b""),
    (1, SOURCE.randbytes(16_385)),
    (0, b"the end"),
]

TLS13_SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


def openssl_suites(version: str) -> list[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:!PSK:!SRP:!aNULL:!aDSS:@SECLEVEL=0")
    return [
        each["name"]
        for each in context.get_ciphers()
        if (each["protocol"] == "TLSv1.3") == (version == "TLSv1_3")
    ]


TLS12_SUITES = openssl_suites("TLSv1_2")
UNSUPPORTED = ("ARIA", "CAMELLIA")


def every(size: int, data: bytes) -> Iterable[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def randomly(source: random.Random, data: bytes) -> Iterable[bytes]:
    while data:
        size = source.choice((1, 3, 5, 6, 100, 1460, 20_000))
        yield data[:size]
        data = data[size:]


@pytest.mark.parametrize("name", [each for each in TLS12_SUITES if not any(
    mark in each for mark in UNSUPPORTED
)])  # fmt: skip
def test_each_suite_of_tls12_that_openssl_offers(tmp_path: Path, name: str) -> None:
    kind = "ec" if "ECDSA" in name else "rsa"
    party = Party(tmp_path, version="TLSv1_2", ciphers=f"{name}:@SECLEVEL=0", kind=kind)
    recorded = party.connect(MESSAGES)
    connection, out = decrypt(party.keys(), pieces(recorded.flights, partial(every, 1448)))
    assert content(out, CLIENT) == recorded.sent(CLIENT)
    assert content(out, SERVER) == recorded.sent(SERVER)
    assert not connection.problems
    summary = connection.summary()
    assert (summary.version, summary.server_name, summary.reason) == ("TLS 1.2", SERVER_NAME, None)
    assert summary.resumed is False
    assert summary.suite.replace("_", "-").removeprefix("TLS-").replace("-WITH", "").replace(
        "AES-128", "AES128").replace("AES-256", "AES256").replace("RSA-AES", "AES").replace(
        "-CBC", "").replace("-CCM-8", "-CCM8").replace("-POLY1305-SHA256", "-POLY1305",
    ) == name.replace("RSA-AES", "AES")  # fmt: skip


@pytest.mark.parametrize("name", ["ECDHE-RSA-CAMELLIA128-SHA256", "ARIA256-GCM-SHA384"])
def test_an_unsupported_suite_is_reported(tmp_path: Path, name: str) -> None:
    if name not in TLS12_SUITES:
        pytest.skip("this OpenSSL has no such suite")
    party = Party(tmp_path, version="TLSv1_2", ciphers=f"{name}:@SECLEVEL=0")
    connection, out = decrypt(party.keys(), party.connect(MESSAGES).flights)
    assert not out
    assert connection.summary().reason is Reason.UNSUPPORTED_CIPHER
    assert connection.summary().suite.startswith("0x")


@pytest.mark.parametrize("suite", [0x1301, 0x1302, 0x1303, 0x1304, 0x1305])
def test_each_suite_of_tls13(suite: int) -> None:
    made = Maker(suite)
    made.handshake()
    for number in range(30):
        made.data(number % 2, bytes([number]) * (number * 37), padding=number % 3 * 100)
    made.update(CLIENT)
    made.data(CLIENT, b"with new keys")
    made.update(CLIENT)
    made.update(SERVER)
    made.data(SERVER, b"with new keys here too")
    made.data(CLIENT, b"and newer ones there")
    connection, out = decrypt(made.keys(), pieces(made.flights, partial(every, 700)))
    assert [content(out, side) for side in (0, 1)] == made.plain
    summary = connection.summary()
    assert summary.reason is None
    assert (summary.key_updates, summary.failed, summary.resyncs) == (3, 0, 0)
    assert not connection.problems


def test_tls13_with_openssl_and_a_client_certificate(tmp_path: Path) -> None:
    party = Party(tmp_path, client_name="alice", alpn="kafka")
    recorded = party.connect(MESSAGES)
    connection, out = decrypt(party.keys(), recorded.flights)
    assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]
    summary = connection.summary()
    assert summary.version == "TLS 1.3"
    assert summary.alpn == "kafka"
    assert summary.client_subject == "O=Orders,CN=alice"
    assert summary.suite in TLS13_SUITES
    resumed_connection = party.connect(MESSAGES, recorded.next_session)
    connection, out = decrypt(party.keys(), resumed_connection.flights)
    assert resumed_connection.resumed
    assert connection.summary().resumed is True
    assert content(out, CLIENT) == resumed_connection.sent(CLIENT)


@pytest.mark.parametrize("name", ["AES128-SHA", "DHE-RSA-AES256-SHA256", "ECDHE-RSA-AES256-SHA384"])
@pytest.mark.parametrize("encrypts_then_macs", [True, False])
def test_cbc_with_the_mac_inside_or_outside(
    tmp_path: Path, name: str, encrypts_then_macs: bool
) -> None:
    party = Party(tmp_path, version="TLSv1_2", ciphers=f"{name}:@SECLEVEL=0")
    if not encrypts_then_macs:
        party.client.options |= 1 << 19  # SSL_OP_NO_ENCRYPT_THEN_MAC
    recorded = party.connect(MESSAGES)
    connection, out = decrypt(party.keys(), recorded.flights)
    hello = connection.negotiation.server_hello
    assert hello is not None
    assert hello.encrypts_then_macs is encrypts_then_macs
    assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]


@pytest.mark.parametrize("size", [1, 7, 60, 300])
def test_handshake_messages_over_several_records(tmp_path: Path, size: int) -> None:
    """Unencrypted ones are divided by hand, as keys do not depend on records."""
    for version in ("TLSv1_2", "TLSv1_3"):
        party = Party(tmp_path, version=version, client_name="alice")
        recorded = party.connect(MESSAGES)
        flights = [
            (side, part) for side, data in recorded.flights for part in recut(data, size, version)
        ]
        assert len(flights) > len(recorded.flights)
        connection, out = decrypt(party.keys(), flights)
        assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]
        assert connection.summary().client_subject == "O=Orders,CN=alice"
        assert not connection.problems


def recut(data: bytes, size: int, version: str) -> Iterable[bytes]:
    """Divide unencrypted handshake records into records of this size."""
    while data:
        length = 5 + int.from_bytes(data[3:5], "big")
        body, is_clear = data[5:length], data[0] == HANDSHAKE
        if data[0] == CHANGE_CIPHER_SPEC and version == "TLSv1_2":
            yield data  # the rest is encrypted
            return
        cut = size if is_clear else len(body)
        for at in range(0, len(body), cut):
            yield record(data[0], body[at : at + cut])
        data = data[length:]


@pytest.mark.parametrize("size", [1, 5, 20])
def test_encrypted_handshake_messages_over_several_records(size: int) -> None:
    made = Maker()
    made.client_hello()
    made.server_hello()
    made.use(SERVER, "HANDSHAKE")
    together = message(8, b"\0\0") + message(FINISHED, bytes(32))
    for at in range(0, len(together), size):
        made.send(SERVER, HANDSHAKE, together[at : at + size])
    made.use(SERVER, "DATA")
    made.data(SERVER, b"from the server")
    connection, out = decrypt(made.keys(), made.flights)
    assert content(out, SERVER) == b"from the server"
    assert not connection.problems


@pytest.mark.parametrize("tickets", [True, False])
@pytest.mark.parametrize("ciphers", ["ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-GCM-SHA256"])
def test_resumption_in_tls12(tmp_path: Path, tickets: bool, ciphers: str) -> None:
    party = Party(
        tmp_path, version="TLSv1_2", tickets=tickets, ciphers=ciphers, client_name="alice"
    )
    first = party.connect(MESSAGES)
    lines = party.key_log.read_bytes()
    resumed_connection = party.connect(MESSAGES, first.next_session)
    assert resumed_connection.resumed
    connection, out = decrypt(party.keys(), resumed_connection.flights)
    assert connection.summary().resumed is True
    assert content(out, SERVER) == resumed_connection.sent(SERVER)
    # Without its own line, the resumed connection has the master secret of the first one.
    keys = KeyLog()
    keys.add(lines)
    assert decrypt(keys, first.flights)[0].summary().client_subject == "O=Orders,CN=alice"
    connection, out = decrypt(keys, resumed_connection.flights)
    assert content(out, CLIENT) == resumed_connection.sent(CLIENT)


def test_hello_retry_request(tmp_path: Path) -> None:
    party = Party(tmp_path, curve="secp521r1")
    recorded = party.connect(MESSAGES)
    hellos = [data for side, data in recorded.flights if side == CLIENT and b"\x16\x03" in data[:2]]
    assert len(hellos) == 1
    assert sum(data.count(bytes.fromhex("cf21ad74e59a6111")) for _, data in recorded.flights) == 1
    connection, out = decrypt(party.keys(), pieces(recorded.flights, partial(every, 100)))
    assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]
    assert connection.summary().reason is None


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("seed", range(3))
def test_any_segmentation(tmp_path: Path, version: str, seed: int) -> None:
    party = Party(tmp_path, version=version)
    recorded = party.connect(MESSAGES)
    source = random.Random(seed)
    _, out = decrypt(party.keys(), pieces(recorded.flights, partial(randomly, source)))
    assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]


def test_a_record_has_the_time_of_its_last_packet() -> None:
    made = Maker()
    made.handshake()
    made.data(CLIENT, b"a" * 100)
    made.data(CLIENT, b"b" * 100)
    stream = b"".join(data for side, data in made.flights[-2:])
    start = made.flights[:-2]
    cut = [(CLIENT, stream[:50]), (CLIENT, stream[50:130]), (CLIENT, stream[130:])]
    _, out = decrypt(made.keys(), start + cut)
    first = len(start)
    assert [(each.packet, each.time_ns) for each in out] == [
        (first + 1, 10 * first + 10),
        (first + 2, 10 * first + 20),
    ]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_directions_in_any_order(tmp_path: Path, version: str) -> None:
    party = Party(tmp_path, version=version)
    recorded = party.connect(MESSAGES)
    for order in ((CLIENT, SERVER), (SERVER, CLIENT)):
        flights = sorted(recorded.flights, key=lambda each: order.index(each[0]))
        _, out = decrypt(party.keys(), flights)
        assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]


@pytest.mark.parametrize("kept", [CLIENT, SERVER])
def test_one_direction_alone(kept: int) -> None:
    made = Maker()
    made.handshake()
    for number in range(5):
        made.data(kept, bytes([number]) * 100)
    flights = [each for each in made.flights if each[0] == kept]
    _, out = decrypt(made.keys(), flights)
    assert content(out, kept) == made.plain[kept]


def test_the_barrier_of_waiting_bytes() -> None:
    made = Maker()
    made.handshake()
    made.data(CLIENT, b"early in the capture")
    connection = TlsConnection(made.keys())
    client = [data for side, data in made.flights if side == CLIENT]
    for packet, data in enumerate(client):
        assert not connection.feed(CLIENT, data, packet, packet)
    assert connection.barriers() == (1, None)
    out = []
    for side, data in made.flights:
        if side == SERVER:
            out += connection.feed(SERVER, data, 9, 9)
    assert [(each.data, each.packet) for each in out] == [(b"early in the capture", 2)]
    assert connection.barriers() is None


def test_sides_may_be_swapped(tmp_path: Path) -> None:
    party = Party(tmp_path)
    recorded = party.connect(MESSAGES)
    connection, out = decrypt(party.keys(), [(1 - side, data) for side, data in recorded.flights])
    assert content(out, 1) == recorded.sent(CLIENT)
    assert connection.client == 1


@pytest.mark.parametrize("accepted", [True, False])
def test_early_data(accepted: bool) -> None:
    made = Maker()
    made.client_hello(early=True)
    made.use(CLIENT, "EARLY")
    made.send_clear(CLIENT, CHANGE_CIPHER_SPEC, b"\1")
    made.data(CLIENT, b"early")
    made.server_hello()
    made.use(SERVER, "HANDSHAKE")
    extensions = b"\0\4\0\x2a\0\0" if accepted else b"\0\0"
    made.send(SERVER, HANDSHAKE, message(8, extensions) + message(FINISHED, bytes(32)))
    made.use(SERVER, "DATA")
    if accepted:
        made.send(CLIENT, HANDSHAKE, message(END_OF_EARLY_DATA, b""))
    made.use(CLIENT, "HANDSHAKE")
    made.send(CLIENT, HANDSHAKE, message(FINISHED, bytes(32)))
    made.use(CLIENT, "DATA")
    made.data(CLIENT, b" and later")
    connection, out = decrypt(made.keys(), made.flights)
    assert content(out, CLIENT) == (b"early and later" if accepted else b" and later")
    assert connection.summary().has_early_data is accepted


# Reasons.


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_reasons(tmp_path: Path, version: str) -> None:
    party = Party(tmp_path, version=version)
    recorded = party.connect(MESSAGES)
    other = Maker(seed=9)

    def reason(keys: KeyLog, flights: list[Flight]) -> Reason | None:
        connection, out = decrypt(keys, flights)
        assert not out
        return connection.summary().reason

    wrong = KeyLog()
    for line in party.key_log.read_text().splitlines():
        if not line.startswith("#"):
            label, about, secret = line.split()
            wrong.add(f"{label} {about} {secret[2:]}00".encode())
    assert reason(KeyLog(), recorded.flights) is Reason.NO_KEY_LOG
    (tmp_path / "empty.log").touch()
    assert reason(KeyLog([tmp_path / "empty.log"]), recorded.flights) is Reason.EMPTY_KEY_LOG
    assert reason(other.keys(), recorded.flights) is Reason.NO_LINE
    assert reason(wrong, recorded.flights) is Reason.TAG_MISMATCH
    first_data = next(
        n for n, (_, data) in enumerate(recorded.flights) if n > 2 and data[0] == DATA
    )
    without_hellos = recorded.flights[max(first_data, len(recorded.flights) - 5) :]
    assert reason(other.keys(), without_hellos) is Reason.NO_HELLOS


def test_a_handshake_without_data_is_reported() -> None:
    made = Maker()
    made.client_hello()
    made.server_hello()
    connection, _ = decrypt(made.keys(), made.flights)
    assert connection.summary().reason is Reason.NO_DATA


def test_the_page_explains_each_reason() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tls.md").read_text(encoding="utf-8")
    for reason in Reason:
        assert reason.value.partition(":")[0] in page


def test_an_old_version_is_reported() -> None:
    made = Maker()
    made.client_hello()
    body = b"\x03\x01" + b"s" * 32 + b"\0\0\x2f\0"
    made.send_clear(SERVER, HANDSHAKE, message(2, body))
    made.send_clear(SERVER, CHANGE_CIPHER_SPEC, b"\1")
    connection, _ = decrypt(made.keys(), made.flights)
    assert connection.summary().version == "TLS 1.0"
    assert connection.summary().reason is Reason.UNSUPPORTED_VERSION


def test_half_a_key_log_decrypts_one_direction() -> None:
    made = Maker()
    made.handshake()
    made.data(CLIENT, b"seen")
    made.data(SERVER, b"not seen")
    keys = KeyLog()
    keys.add("\n".join(line for line in made.lines if "SERVER_TRAFFIC" not in line).encode())
    connection, out = decrypt(keys, made.flights)
    assert [content(out, side) for side in (0, 1)] == [b"seen", b""]
    assert connection.summary().reason is Reason.NO_LINE


def test_renegotiation_is_reported(tmp_path: Path) -> None:
    from dissector.tls.cipher_suites import SUITES
    from dissector.tls.record_ciphers import Tls12Aead, tls12_ciphers

    party = Party(tmp_path, version="TLSv1_2", ciphers="AES128-GCM-SHA256")
    recorded = party.connect([(0, b"before")])
    _, random_hex, master = next(
        line for line in party.key_log.read_text().splitlines() if line[0] == "C"
    ).split()
    hello = next(data for side, data in recorded.flights if side == SERVER)
    cipher = tls12_ciphers(
        SUITES[0x009C], bytes.fromhex(master), bytes.fromhex(random_hex), hello[11:43], True
    )[CLIENT]
    assert isinstance(cipher, Tls12Aead)
    body = message(1, b"again")
    header = (2).to_bytes(8, "big") + b"\x16\x03\x03" + len(body).to_bytes(2, "big")
    nonce = b"explicit"
    sealed = cipher._aead.encrypt(cipher._iv + nonce, body, header)
    connection, out = decrypt(
        party.keys(), [*recorded.flights, (CLIENT, record(HANDSHAKE, nonce + sealed))]
    )
    assert content(out, CLIENT) == b"before"
    assert connection.summary().renegotiated
    assert "renegotiation" in connection.problems[0][1].what


# Keys.


@pytest.mark.parametrize("before", ["", "# begins\n", Maker(seed=99).lines[0] + "\n"])
def test_a_growing_key_log(tmp_path: Path, before: str) -> None:
    made = Maker()
    made.handshake()
    for number in range(10):
        made.data(number % 2, bytes([number]) * 50)
    path = tmp_path / "keys.log"
    path.write_text(before)
    keys = KeyLog([path], follow=True)
    connection = TlsConnection(keys)
    out = []
    for packet, (side, data) in enumerate(made.flights):
        if packet == 8:
            assert not out
            path.write_text(before + "\n".join(made.lines) + "\n")
            assert keys.refresh()
        out += connection.feed(side, data, packet, packet)
    out += connection.finish()
    assert [content(out, side) for side in (0, 1)] == made.plain


def test_a_pickle_continues_without_keys(tmp_path: Path) -> None:
    party = Party(tmp_path, client_name="alice")
    for version in ("TLSv1_3", "TLSv1_2"):
        party = Party(tmp_path, version=version, client_name="alice")
        recorded = party.connect(MESSAGES)
        keys = party.keys()
        secrets = [
            bytes.fromhex(line.split()[2])
            for line in party.key_log.read_text().splitlines()
            if not line.startswith("#")
        ]
        connection = TlsConnection(keys)
        out = []
        for packet, (side, data) in enumerate(pieces(recorded.flights, partial(every, 3000))):
            out += connection.feed(side, data, packet, packet)
            stored = pickle.dumps((connection, keys))
            assert not any(secret in stored for secret in secrets)
            assert not any(secret.hex() in repr((connection, keys)) for secret in secrets)
            connection, keys = pickle.loads(stored)
            connection.attach(keys)
        out += connection.finish()
        assert [content(out, side) for side in (0, 1)] == [recorded.sent(0), recorded.sent(1)]


# Hostile bytes.


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_hostile_bytes_raise_no_error_and_give_no_plaintext(data: st.DataObject) -> None:
    made = Maker()
    made.handshake()
    made.data(CLIENT, b"x" * 90)
    made.data(SERVER, b"y" * 90)
    made.update(CLIENT)
    made.data(CLIENT, b"z" * 90)
    keys = data.draw(st.sampled_from([made.keys(), KeyLog(), Maker(seed=3).keys()]))
    connection = TlsConnection(keys)
    out = []
    for packet, (side, sent) in enumerate(made.flights):
        action = data.draw(st.sampled_from("kkkkkfdigu"))
        if action == "f":
            at = data.draw(st.integers(0, len(sent) - 1))
            sent = sent[:at] + bytes([sent[at] ^ data.draw(st.integers(1, 255))]) + sent[at + 1 :]
        elif action == "i":
            sent = data.draw(st.binary(max_size=80)) + sent
        elif action == "g":
            length = data.draw(st.sampled_from([None, 1, len(sent), 10**7]))
            out += connection.gap(side, length, packet, packet)
        elif action == "u":
            sent = record(
                data.draw(st.integers(19, 25)), data.draw(st.binary(max_size=60))
            ) + sent  # fmt: skip
        if action != "d":
            out += connection.feed(side, sent, packet, packet)
    out += connection.finish()
    assert content(out, 0).strip(b"xz") == content(out, 1).strip(b"y") == b""
    connection.summary()
    pickle.loads(pickle.dumps(connection))


@given(st.binary(max_size=400), st.integers(1, 11), st.binary(max_size=400))
@settings(max_examples=examples(60), deadline=None)
def test_hostile_handshakes(body: bytes, kind: int, second: bytes) -> None:
    connection = TlsConnection(Maker().keys())
    for side, each in ((0, body), (1, second)):
        for version in (b"\x03\x03", b"\x03\x01"):
            hello = version + bytes([1]) * 32 + each
            connection.feed(side, record(HANDSHAKE, message(kind, hello)), 0, 0)
            connection.feed(side, record(CHANGE_CIPHER_SPEC, b"\1"), 0, 0)
            connection.feed(side, record(HANDSHAKE, each), 0, 0)
    connection.finish()
    connection.summary()


def test_memory_is_bounded() -> None:
    waiting: Callable[[TlsConnection], int] = lambda each: len(pickle.dumps(each))  # noqa: E731
    made = Maker()
    made.client_hello()
    for tail in (record(DATA, bytes(1000)), record(HANDSHAKE, b"\x0b\xff\xff\xff" + bytes(999))):
        connection = TlsConnection(made.keys())
        connection.feed(*made.flights[0], 0, 0)
        for packet in range(2000):
            connection.feed(CLIENT, tail, packet, packet)
        assert waiting(connection) < 1 << 20
