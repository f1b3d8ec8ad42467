"""Redacted exports of damaged captures, and the options; the corpus has a room of its own."""

from __future__ import annotations

import json
import stat
import struct
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import tcp_captures
from tests.conform import mutations
from tests.corpus import CAPTURES, fast_and_long
from tests.dissector.capture.handmade_packets import block, ethernet, interface, ipv4, section
from tests.dissector.cli import cli_traffic
from tests.dissector.cli.conftest import Run
from tests.dissector.values.value_captures import write_values
from tools.record.manifest import keylogs

NUMBERED = ("capture", "connection", "request_packet", "response_packet", "packet", "evidence")
CONTENTS = ("key", "value", "headers")
VALUES = ("producer_id", "topic_id", "problems", "decoded")
NAMED = ("client", "broker", "client_id", "topic", "topics")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(b"a key of the test")
    return path


def redacted(run: Run, capture: Path, out: Path, key: Path, *words: str | Path) -> dict[str, str]:
    """Redact a capture; return pseudonyms by replaced name."""
    listed = out.with_suffix(".map")
    done = run("export", capture, "--redact", "--key", key, "--map", listed, "-o", out, *words)
    assert done.status == 0
    assert "other rows" not in done.err
    assert "zeros" not in done.err
    lines = [line.split("\t") for line in listed.read_text().splitlines()]
    return {_unescaped(text): _unescaped(pseudonym) for pseudonym, text in lines}


def _unescaped(text: str) -> str:
    return text.encode().decode("unicode_escape")


def renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        host, colon, port = value.replace("[", "").replace("]", "").rpartition(":")
        if host in names:
            new = names[host]
            return f"[{new}]:{port}" if ":" in new else f"{new}{colon}{port}"
        return names.get(value, value)
    return [renamed(each, names) for each in value] if isinstance(value, list) else value


def rows(
    run: Run, capture: Path, command: str, names: dict[str, str] | None = None, *words: str | Path
) -> Counter[str]:
    """Return the rows of a command without numbers and contents, with names replaced."""
    done = run(command, capture, "-T", "ndjson", *words)
    return Counter(
        json.dumps(
            {
                name: _comparable(name, value, names or {})
                for name, value in row.items()
                if name not in (*NUMBERED, *VALUES, "network_ms", "server_ms")
            }
        )
        for row in done.rows
    )


def _comparable(column: str, value: Any, names: dict[str, str]) -> Any:
    if column in CONTENTS:
        return not value
    return renamed(value, names) if column in NAMED else value


def keys_of(capture: Path) -> list[str | Path]:
    return [word for each in keylogs(capture) for word in ("--keylog", each)]


DAMAGES = (
    mutations.lose,
    mutations.begin_later,
    mutations.end_early,
    mutations.cut,
    mutations.spoil,
)
SMALL = [path for path in CAPTURES if path.suffix == ".pcap" and path.stat().st_size < 150_000]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", fast_and_long(range(10), range(10, 150)))
def test_redacted_damaged_captures_keep_whole_messages(
    seed: int, run: Run, key: Path, tmp_path: Path
) -> None:
    """Undecodable bytes become zeros, so only rows of whole messages are the same."""
    chance = Random(seed)
    head, recorded = mutations.packets_of(chance.choice(SMALL))
    damaged, out = tmp_path / "damaged.pcap", tmp_path / "out.pcapng"
    recorded = DAMAGES[seed % len(DAMAGES)](recorded, chance)
    damaged.write_bytes(mutations.file_of(head, recorded))
    names = redacted(run, damaged, out, key)
    before = rows(run, damaged, "pairs", names, "-Y", "not problems")
    assert not before - rows(run, out, "pairs")


@pytest.mark.parametrize("seed", fast_and_long(range(4), range(4, 60)))
def test_repeated_packets_are_redacted_equally(
    seed: int, run: Run, key: Path, tmp_path: Path
) -> None:
    chance = Random(seed)
    head, recorded = mutations.packets_of(chance.choice(SMALL))
    damage = (mutations.repeat, mutations.swap)[seed % 2]
    damaged, out = tmp_path / "damaged.pcap", tmp_path / "out.pcapng"
    damaged.write_bytes(mutations.file_of(head, damage(recorded, chance)))
    names = redacted(run, damaged, out, key)
    assert rows(run, out, "pairs") == rows(run, damaged, "pairs", names)


def shop(folder: Path) -> Path:
    path = folder / "shop.pcap"
    tcp_captures.write(path, cli_traffic.shop().packets)
    return path


def test_a_filter_selects_the_redacted_packets(run: Run, key: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    names = redacted(run, shop(tmp_path), out, key, "-Y", "api == Fetch")
    assert [row["topics"] for row in run("pairs", out, "-T", "ndjson", "-Y", "api == Fetch").rows]
    assert names["orders"].encode() in out.read_bytes()
    assert b"HTTP" not in out.read_bytes()


def test_the_same_key_gives_the_same_names(run: Run, key: Path, tmp_path: Path) -> None:
    first = redacted(run, shop(tmp_path), tmp_path / "1.pcapng", key)
    second = redacted(run, shop(tmp_path), tmp_path / "2.pcapng", key, "-Y", "api == Produce")
    assert first == second
    assert (tmp_path / "1.pcapng").read_bytes() != (tmp_path / "2.pcapng").read_bytes()
    key.write_bytes(b"another key of the test")
    assert redacted(run, shop(tmp_path), tmp_path / "3.pcapng", key)["orders"] != first["orders"]


def test_addresses_in_packets_and_messages_agree(run: Run, key: Path, tmp_path: Path) -> None:
    """The host of a broker in Metadata becomes the address in its packets."""
    wire, capture, out = tcp_captures.Wire(), tmp_path / "a.pcap", tmp_path / "out.pcapng"
    connection = wire.connect(hosts=("10.4.5.6", "192.168.7.8")).syn()
    brokers = [{"node_id": 1, "host": "192.168.7.8", "port": 9092}]
    connection.client(cli_traffic.request_frame(cli_traffic.METADATA, 12, 5, topics=None))
    connection.broker(
        cli_traffic.response_frame(cli_traffic.METADATA, 12, 5, brokers=brokers)
    ).fin()
    tcp_captures.write(capture, wire.packets)
    names = redacted(run, capture, out, key)
    [row] = run("pairs", out, "-T", "ndjson").rows
    assert row["broker"] == f"{names['192.168.7.8']}:9092"
    assert b"192.168.7.8" not in out.read_bytes()
    redacted(run, capture, out, key, "--keep", "host")
    [row] = run("pairs", out, "-T", "ndjson").rows
    assert (row["client"], row["broker"]) == ("10.4.5.6:50000", "192.168.7.8:9092")


def test_several_captures(run: Run, key: Path, tmp_path: Path) -> None:
    """Each is a section; pseudonyms are the same in all."""
    later, out = tmp_path / "later.pcapng", tmp_path / "out.pcapng"
    wire = tcp_captures.Wire(now_ns=tcp_captures.START_NS + 10**12)
    group = cli_traffic.request_frame(cli_traffic.HEARTBEAT, 4, 9, group_id="g", member_id="m")
    wire.connect(port=50009).syn().client(group).broker(
        cli_traffic.response_frame(cli_traffic.HEARTBEAT, 4, 9)
    )
    tcp_captures.write(later, wire.packets)
    listed = tmp_path / "map"
    words = ("--redact", "--key", key, "--map", listed, "-o", out)
    assert run("export", shop(tmp_path), later, *words).status == 0
    [first, second] = run(
        "pairs", out, "-T", "ndjson", "-Y", "api == Heartbeat and request.group_id and not problems"
    ).rows
    assert first["client_id"] == second["client_id"]
    assert {first["correlation_id"], second["correlation_id"]} == {7, 9}


def test_kept_kinds_of_names_are_unchanged(run: Run, key: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    names = redacted(run, shop(tmp_path), out, key, "--keep", "topic, client_id")
    assert "orders" not in names
    found = run("pairs", out, "-T", "ndjson", "-Y", "api == Produce").rows
    assert {row["client_id"] for row in found} == {"shop", None}
    assert ["orders"] in [row["topics"] for row in found]


def test_comments_and_secrets_are_dropped(run: Run, key: Path, tmp_path: Path) -> None:
    capture, out = tmp_path / "a.pcapng", tmp_path / "out.pcapng"
    comment = struct.pack("<HH", 1, 12) + b"comment-acme" + bytes(4)
    secrets = b"CLIENT_RANDOM acme"
    blocks = [
        section(),
        block(10, struct.pack("<II", 0x544C534B, len(secrets)) + secrets + bytes(2)),
        interface(options=[(9, b"\x09"), (2, b"eth-acme")]),
    ]
    for each in cli_traffic.shop().packets:
        ticks = each.time_ns >> 32, each.time_ns & 0xFFFFFFFF
        head = struct.pack("<IIIII", 0, *ticks, len(each.data), len(each.data))
        blocks.append(block(6, head + each.data + bytes(-len(each.data) % 4) + comment))
    capture.write_bytes(b"".join(blocks))
    redacted(run, capture, out, key)
    assert b"acme" not in out.read_bytes()
    assert run("pairs", out, "-T", "ndjson").rows


def test_fragments_become_whole_packets(run: Run, key: Path, tmp_path: Path) -> None:
    capture, out = tmp_path / "a.pcap", tmp_path / "out.pcapng"
    every = cli_traffic.shop().packets
    at = next(n for n, each in enumerate(every) if len(each.payload) > 100)
    ip = every[at].data[14:]
    hosts = {"source": "10.0.0.1", "target": "10.0.0.2"}
    pieces = [
        ethernet(ipv4(ip[20:84], number=9, fragment=0x2000, **hosts)),
        ethernet(ipv4(ip[84:], number=9, fragment=8, **hosts)),
    ]
    halves = [tcp_captures.Packet(every[at].time_ns, each) for each in pieces]
    tcp_captures.write(capture, [*every[:at], *halves, *every[at + 1 :]])
    names = redacted(run, capture, out, key)
    assert rows(run, out, "pairs") == rows(run, capture, "pairs", names)


def test_tls_connections_are_omitted_without_decrypt(run: Run, key: Path, tmp_path: Path) -> None:
    capture = next(path for path in CAPTURES if path.name == "kafka4-java-tls13.pcap.gz")
    out = tmp_path / "out.pcapng"
    done = run("export", capture, "--redact", "--key", key, "-o", out, *keys_of(capture))
    assert "TLS connections are left out; --decrypt" in done.err
    assert run("pairs", out, "-T", "ndjson").rows == []


def test_only_the_owner_can_read_the_map(run: Run, key: Path, tmp_path: Path) -> None:
    listed = tmp_path / "out.map"
    listed.write_text("old")
    redacted(run, shop(tmp_path), tmp_path / "out.pcapng", key)
    assert stat.S_IMODE(listed.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--keep topic", "--keep needs --redact"),
        ("--decrypt", "--decrypt needs --redact"),
        ("--redact --keep value", "--keep takes topic, group, member"),
        ("--redact --key nowhere", "nowhere: no such key; make one: head -c 32 /dev/urandom"),
        (
            "--redact --map shop.pcap",
            "shop.pcap, which is read (CAPTURE); --map would overwrite it",
        ),
        ("--redact --map out.pcapng", "out.pcapng is written (--map); -o would overwrite it"),
        ("--redact --key short", "a key has 16 bytes or more, this one 5"),
    ],
)
def test_invalid_options(
    words: str, message: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short").write_bytes(b"short")
    status, _, err = run("export", shop(tmp_path), "-o", "out.pcapng", *words.split())
    assert status == 2
    assert message in err
    assert not Path("out.pcapng").exists()


def test_keep_schema_leaves_values_readable(run: Run, tmp_path: Path, key: Path) -> None:
    """What decodes still does, by the schemas in the new capture, with other contents."""
    capture, out = write_values(tmp_path / "a.pcap"), tmp_path / "b.pcapng"
    done = run("export", capture, "--keep-schema", "-o", out)
    assert (done.status, "--keep-schema needs --redact" in done.err) == (2, True)
    redacted(run, capture, out, key, "--keep-schema", "--keep", "topic")
    columns = "topic,key_schema,key_decoded,value_format,value_schema,value_decoded,value_problem"
    before, after = (
        run("records", each, "-Y", "topic == orders", "-T", "ndjson", "--columns", columns).rows
        for each in (capture, out)
    )
    for old, new in zip(before, after, strict=True):
        assert {**new, "key_decoded": None, "value_decoded": None} == {
            **old,
            "key_decoded": None,
            "value_decoded": None,
        }
        old_value, new_value = old["value_decoded"], new["value_decoded"]
        assert list(new_value) == list(old_value)
        assert len(new_value["items"]) == len(old_value["items"])
        assert new_value["name"] not in (old_value["name"], "Ann")
        assert len(new_value["name"].encode()) == len(old_value["name"].encode())
    assert b"Ann" not in out.read_bytes()
