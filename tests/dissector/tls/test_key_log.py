from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.errors import CaptureError
from dissector.tls.key_log import KeyLog
from dissector.tls.key_schedule import extended_master_secret, master_secret
from tests.dissector.tls.endpoints import SERVER_NAME, Party, content, decrypt, pem
from tests.example_counts import examples

RANDOM, MASTER = "ab" * 32, "0c" * 48
LINE = f"CLIENT_RANDOM {RANDOM} {MASTER}"


def log(*lines: str, end: str = "\n") -> KeyLog:
    keys = KeyLog()
    keys.add((end.join(lines) + end).encode())
    return keys


@pytest.mark.parametrize("line", [LINE, LINE.upper(), f"  {LINE}  ", f"\ufeff{LINE}"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_formats_of_a_line(line: str, end: str) -> None:
    keys = log("# a comment", "", line, line, end=end)
    assert keys.secret(bytes.fromhex(RANDOM), "CLIENT_RANDOM") == bytes.fromhex(MASTER)
    assert (keys.lines, keys.skipped) == (1, 0)


@pytest.mark.parametrize(
    "label",
    [
        "CLIENT_EARLY_TRAFFIC_SECRET",
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ],
)
@pytest.mark.parametrize("size", [32, 48])
def test_labels_of_tls13(label: str, size: int) -> None:
    keys = log(f"{label} {RANDOM} {'01' * size}")
    assert keys.secret(bytes.fromhex(RANDOM), label) == b"\1" * size
    assert keys.has_line(bytes.fromhex(RANDOM))


def test_labels_without_use_are_known() -> None:
    lines = [f"{each} {RANDOM} {MASTER}" for each in ("EXPORTER_SECRET", "EARLY_EXPORTER_SECRET")]
    keys = log(*lines, f"ECH_SECRET {RANDOM} {MASTER}", f"ECH_CONFIG {RANDOM} 00")
    assert (keys.lines, keys.skipped) == (0, 0)
    assert not keys


@pytest.mark.parametrize(
    "line",
    [
        "CLIENT_RANDOM",
        f"CLIENT_RANDOM {RANDOM} {MASTER} more",
        f"CLIENT_RANDOM {RANDOM} {MASTER[2:]}",
        f"CLIENT_RANDOM {RANDOM[2:]} {MASTER}",
        f"CLIENT_RANDOM {RANDOM} xx",
        f"NEW_LABEL {RANDOM} {MASTER}",
        f"RSA Session-ID:{RANDOM} Master-Key:00",
        f"RSA 0102 {MASTER}",
        "\x00\xff",
        "x" * 100_000,
    ],
)
def test_invalid_lines_are_skipped_and_counted(line: str) -> None:
    keys = log(line, LINE)
    assert (keys.lines, keys.skipped) == (1, 1)


def test_an_incomplete_last_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_text("# begins\r\n" + LINE[:50])
    keys = KeyLog([path], follow=True)
    assert (keys.lines, keys.skipped, bool(keys)) == (0, 0, False)
    assert not keys.refresh()
    path.write_text("# begins\r\n" + LINE + "\r\n" + LINE.replace("ab", "cd")[:30])
    assert keys.refresh()
    assert (keys.lines, keys.skipped, keys.generation) == (1, 0, 1)
    assert not keys.refresh()
    path.unlink()
    assert not keys.refresh()


@pytest.mark.parametrize("cut", [1, 40, 97])
def test_an_incomplete_last_line_of_a_complete_file_is_skipped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "keys.log"
    path.write_text(LINE + "\n" + LINE.replace("ab", "cd")[:-cut])
    assert (KeyLog([path]).lines, KeyLog([path]).skipped) == (1, 0)
    path.write_text(LINE)
    assert KeyLog([path]).lines == 1


def test_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_text("".join(f"CLIENT_RANDOM {n:064x} {MASTER}\n" for n in range(20_000)))
    assert KeyLog([path]).lines == 20_000


def test_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"none\.log: key log: No such file"):
        KeyLog([tmp_path / "none.log"])


def test_a_pickle_reads_the_files_again(tmp_path: Path) -> None:
    path = tmp_path / "keys.log"
    path.write_text(LINE + "\n")
    keys = KeyLog([path])
    stored = pickle.dumps(keys)
    assert bytes.fromhex(MASTER) not in stored
    assert MASTER.encode() not in stored
    assert MASTER not in repr(keys) + str(vars(keys).keys())
    assert pickle.loads(stored).secret(bytes.fromhex(RANDOM), "CLIENT_RANDOM")


@given(st.binary(max_size=300))
@settings(max_examples=examples(100), deadline=None)
def test_any_bytes(raw: bytes) -> None:
    keys = KeyLog()
    keys.add(raw)
    keys.add(LINE.encode() + b"\n" + raw + b"\n" + LINE.encode())
    assert keys.secret(bytes.fromhex(RANDOM), "CLIENT_RANDOM") == bytes.fromhex(MASTER)


@pytest.mark.parametrize("tickets", [True, False])
def test_lines_of_the_java_agent(tmp_path: Path, tickets: bool) -> None:
    """A full handshake logs the server's session id: converted here from the log of OpenSSL."""
    party = Party(tmp_path, version="TLSv1_2", tickets=tickets)
    recorded = party.connect([(0, b"question"), (1, b"answer")])
    hello = next(data for side, data in recorded.flights if side == 1)
    session = hello[44 : 44 + hello[43]]
    master = party.key_log.read_text().split()[-1]
    keys = log(f"RSA Session-ID:{session.hex().upper()} Master-Key:{master.upper()}")
    _, out = decrypt(keys, recorded.flights)
    assert content(out, 1) == (b"answer" if session else b"")
    assert bool(session) is not tickets


# From a premaster secret.

PREMASTER = b"\3\3" + bytes(46)


def test_master_secrets() -> None:
    # Source: `openssl kdf -keylen 48 -kdfopt digest:... -kdfopt hexsecret:... TLS1-PRF`
    secret = master_secret("sha256", PREMASTER, b"c" * 32, b"s" * 32)
    assert secret.hex() == (
        "5feb0763b0699c0aa7207d62fb5bd426defa22eda0b2172dbb16e2c274bc52f5"
        "245681822480ecb444932042282f608c"
    )
    secret = extended_master_secret("sha384", PREMASTER, b"transcript")
    assert secret.hex() == (
        "8830ca3ea7cc29ee7b1935d6e05174cedb64f1e98c3b13b688bf640b9eddf5f8"
        "423758cfbaae8319fa1549537d6a82ce"
    )


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES256-SHA"])
@pytest.mark.parametrize("is_extended", [True, False])
@pytest.mark.parametrize("client_name", ["", "alice"])
def test_lines_with_a_premaster_secret(
    tmp_path: Path, name: str, is_extended: bool, client_name: str
) -> None:
    party = Party(tmp_path, version="TLSv1_2", ciphers=name, client_name=client_name)
    if not is_extended:
        party.client.options |= 1  # SSL_OP_NO_EXTENDED_MASTER_SECRET
    recorded = party.connect([(0, b"question"), (1, b"answer")])
    client = b"".join(data for side, data in recorded.flights if side == 0)
    at = client.index(b"\x10\x00\x01\x02\x01\x00")
    encrypted = client[at + 6 : at + 6 + 256]
    key = load_pem_private_key(pem("rsa", SERVER_NAME), None)
    assert isinstance(key, RSAPrivateKey)
    premaster = key.decrypt(encrypted, PKCS1v15()).hex()
    for line in (
        f"PMS_CLIENT_RANDOM {client[11:43].hex()} {premaster}",
        f"RSA {encrypted[:8].hex()} {premaster}",
    ):
        connection, out = decrypt(log(line), recorded.flights)
        assert content(out, 1) == b"answer"
        assert connection.summary().reason is None


def test_a_file_without_lines_is_an_error() -> None:
    with pytest.raises(CaptureError, match=r"/dev/zero: key log: no line ends within .* at byte 0"):
        KeyLog(["/dev/zero"])
