"""No command shows passwords, tokens and salts of a capture by default."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import polars
import pytest

from dissector.protocol.embedded.log_records.cluster_metadata import (
    ConfigRecord,
    UserScramCredentialRecord,
)
from dissector.protocol.embedded.log_records.group_coordinator import GroupMetadataValue
from dissector.protocol.records import Record, build_records, new_batch
from dissector.view.text.hexdump import hexdump
from tests import tcp_captures
from tests.default_frames import body, request, sized
from tests.dissector.cli.cli_traffic import FETCH, request_frame, response_frame
from tests.dissector.cli.conftest import Done, Run
from tests.tcp_captures import WireConnection

SECRET = b"open-sesame-4711"
"""Made up; in every play it is the one thing that must not be shown."""

SALT = base64.b64encode(SECRET)


def handshake(connection: WireConnection, mechanism: str, version: int) -> WireConnection:
    connection.client(request_frame(17, version, 1, mechanism=mechanism))
    return connection.broker(response_frame(17, version, 1, mechanisms=[mechanism]))


def plain_raw(connection: WireConnection) -> None:
    handshake(connection, "PLAIN", 0).client(sized(b"\0alice\0" + SECRET)).broker(sized(b""))


def plain(connection: WireConnection) -> None:
    handshake(connection, "PLAIN", 1).client(
        request_frame(36, 2, 2, auth_bytes=b"\0alice\0" + SECRET)
    )
    connection.broker(response_frame(36, 2, 2))


SCRAM = [
    b"n,,n=alice,r=nonce",
    b"r=noncemore,s=" + SALT + b",i=4096",
    b"c=biws,r=noncemore,p=" + SALT,
    b"v=" + SALT,
]


def scram_raw(connection: WireConnection) -> None:
    handshake(connection, "SCRAM-SHA-256", 0)
    for number, token in enumerate(SCRAM):
        connection.send(number % 2, sized(token))


def scram(connection: WireConnection) -> None:
    handshake(connection, "SCRAM-SHA-512", 1)
    for number in (2, 3):
        connection.client(request_frame(36, 1, number, auth_bytes=SCRAM[2 * number - 4]))
        connection.broker(response_frame(36, 1, number, auth_bytes=SCRAM[2 * number - 3]))


def bearer(connection: WireConnection) -> None:
    token = b"n,,\x01auth=Bearer " + SECRET + b"\x01\x01"
    handshake(connection, "OAUTHBEARER", 1).client(request_frame(36, 0, 2, auth_bytes=token))
    connection.broker(response_frame(36, 0, 2))


def delegation_tokens(connection: WireConnection) -> None:
    connection.client(request_frame(38, 2, 1)).broker(
        response_frame(38, 2, 1, token_id="t", hmac=SECRET)
    )
    connection.client(request_frame(41, 2, 2))
    connection.broker(response_frame(41, 2, 2, tokens=[{"token_id": "t", "hmac": SECRET}]))
    connection.client(request_frame(39, 2, 3, hmac=SECRET), request_frame(40, 1, 4, hmac=SECRET))
    connection.broker(response_frame(39, 2, 3), response_frame(40, 1, 4))


CREDENTIAL = {"name": "alice", "mechanism": 1, "salt": SECRET, "salted_password": SECRET}


def scram_credentials(connection: WireConnection) -> None:
    connection.client(request_frame(51, 0, 1, upsertions=[CREDENTIAL])).broker(
        response_frame(51, 0, 1)
    )


def configs(connection: WireConnection) -> None:
    text = SECRET.decode()
    entries = [
        {"name": "ssl.keystore.password", "value": text},
        {"name": "sasl.jaas.config", "value": f'LoginModule required password="{text}";'},
    ]
    resources = [{"resource_type": 4, "resource_name": "1", "configs": entries}]
    connection.client(
        request_frame(33, 2, 1, resources=resources), request_frame(44, 1, 2, resources=resources)
    )
    connection.broker(response_frame(33, 2, 1), response_frame(44, 1, 2))
    synonym = {"name": "listener.name.x", "value": text}
    entry = {"name": "custom", "value": text, "is_sensitive": True, "synonyms": [synonym]}
    results = [{"resource_name": "1", "configs": [entry]}]
    connection.client(request_frame(32, 4, 3)).broker(response_frame(32, 4, 3, results=results))
    topics = [{"name": "t", "configs": [{"name": "my.password", "value": text}]}]
    described = [{"name": "t", "configs": [{"name": "x", "value": text, "is_sensitive": True}]}]
    connection.client(request_frame(19, 7, 4, topics=topics)).broker(
        response_frame(19, 7, 4, topics=described)
    )


def envelope(connection: WireConnection) -> None:
    inner = request_frame(51, 0, 9, upsertions=[CREDENTIAL])[4:]
    connection.client(request_frame(58, 0, 1, request_data=inner)).broker(response_frame(58, 0, 1))
    answer = response_frame(38, 2, 5, token_id="t", hmac=SECRET)[4:]
    connection.client(request_frame(58, 0, 2, request_data=request_frame(38, 2, 5)[4:]))
    connection.broker(response_frame(58, 0, 2, response_data=answer))


def cluster_metadata(connection: WireConnection) -> None:
    _fetch_log(connection, 12, topic="__cluster_metadata")


def cluster_metadata_by_id(connection: WireConnection) -> None:
    _fetch_log(connection, 13, topic_id=UUID(int=1))


def _fetch_log(connection: WireConnection, version: int, **topic: Any) -> None:
    """Fetch secrets from the KRaft log, with a truncated last batch."""
    credential = {
        "name": "alice",
        "mechanism": 1,
        "salt": SECRET,
        "stored_key": SECRET,
        "server_key": SECRET,
        "iterations": 4096,
    }
    config = {
        "resource_type": 4,
        "resource_name": "1",
        "name": "ssl.key.password",
        "value": SECRET.decode(),
    }
    values = [
        b"\x01\x0b\x00" + body(UserScramCredentialRecord, 0, **credential),
        b"\x01\x04\x00" + body(ConfigRecord, 0, **config),
        b"\x01\x0b\x7f" + SECRET,
    ]
    plain = build_records([new_batch([Record(value=values[0])])])
    for number, codec in enumerate(("none", "gzip", "snappy"), 1):
        records = build_records([new_batch([Record(value=v) for v in values], codec=codec)])
        content = records + plain[:-1] if number > 1 else records
        connection.client(request_frame(FETCH, version, number, topics=[topic]))
        responses = [{**topic, "partitions": [{"partition_index": 0, "records": content}]}]
        connection.broker(response_frame(FETCH, version, number, responses=responses))


def damaged(connection: WireConnection) -> None:
    """Undecodable messages: bytes left over, too long, or of an unknown version."""
    good = request_frame(36, 2, 1, auth_bytes=SECRET)[4:]
    connection.client(sized(good + SECRET)).broker(response_frame(36, 2, 1))
    newer = request(36, 2, 2, "c", auth_bytes=SECRET)[4:]
    connection.client(sized(newer[:2] + b"\0\x03" + newer[4:])).broker(response_frame(36, 2, 2))
    short = bytearray(request_frame(39, 1, 3, hmac=SECRET)[4:])
    short[-len(SECRET) - 12 : -len(SECRET) - 8] = b"\0\0\x10\0"
    connection.client(sized(bytes(short))).broker(response_frame(39, 1, 3))


def settings_of_others(connection: WireConnection) -> None:
    """Settings unknown to Kafka, or with credentials within their values."""
    text = SECRET.decode()
    settings = {
        "somebody.elses.setting": text,
        "aws.access.token ": text,
        "confluent.basic.auth.user.info": f"alice:{text}",
        "azure.storage.connection.string": f"AccountKey={text}",
        "sasl.oauthbearer.assertion.private.key.passphrase": text,
        "listener.name.tls.ssl.keystore.certificate.chain": text,
        "sasl.oauthbearer.token.endpoint.url": f"https://alice:{text}@idp/token",
    }
    entries = [{"name": name, "value": value} for name, value in settings.items()]
    resources = [{"resource_type": 4, "resource_name": "1", "configs": entries}]
    connection.client(
        request_frame(33, 2, 1, resources=resources), request_frame(44, 1, 2, resources=resources)
    )
    connection.broker(response_frame(33, 2, 1), response_frame(44, 1, 2))
    typed = {"name": "custom", "value": text, "config_type": 9}
    named = {"name": "my.secret", "value": text}
    results = [{"resource_name": "1", "configs": [typed, named]}]
    connection.client(request_frame(32, 4, 3)).broker(response_frame(32, 4, 3, results=results))


def json_web_token(connection: WireConnection) -> None:
    parts = (b'{"alg":"none"}', b'{"sub":"' + SECRET + b'"}')
    token = b".".join(base64.urlsafe_b64encode(part) for part in parts) + b"."
    twice = b"n,a=" + SECRET + b",\1auth=Bearer " + SECRET + b"\1\1"
    handshake(connection, "OAUTHBEARER", 1)
    connection.client(request_frame(36, 2, 2, auth_bytes=b"n,,\1auth=Bearer " + token + b"\1\1"))
    connection.client(request_frame(36, 2, 3, auth_bytes=twice))
    refused = f"invalid token Bearer {token.decode()}"
    connection.broker(
        response_frame(36, 2, 2, error_code=58, error_message=refused), response_frame(36, 2, 3)
    )


def error_texts(connection: WireConnection) -> None:
    text = SECRET.decode()
    why = f"Invalid value {text} for configuration ssl.key.password: no."
    connection.client(
        request_frame(44, 1, 1), request_frame(19, 7, 2), request_frame(13, 5, 3, group_id="g")
    )
    connection.broker(
        response_frame(44, 1, 1, responses=[{"error_code": 40, "error_message": why}])
    )
    topics = [{"name": "t", "error_code": 40, "error_message": f"password={text} is short"}]
    connection.broker(response_frame(19, 7, 2, topics=topics), response_frame(13, 5, 3))


def urls(connection: WireConnection) -> None:
    """Connect workers exchange their URLs through the group coordinator."""
    url = b"http://admin:" + SECRET + b"@host:8083/"
    metadata = b"\0\0" + len(url).to_bytes(2, "big") + url + bytes(8)
    protocols = [{"name": "default", "metadata": metadata}]
    connection.client(
        request_frame(11, 5, 1, group_id="c", protocol_type="connect", protocols=protocols)
    )
    members = [{"member_id": "m", "metadata": metadata}]
    connection.broker(response_frame(11, 5, 1, protocol_name="default", members=members))
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "/10.0.0.1",
        "subscription": metadata,
    }
    times = {"rebalance_timeout": 1, "session_timeout": 1, "group_instance_id": None}
    members = [{**member, **times, "assignment": b""}]
    value = body(GroupMetadataValue, 3, protocol_type="connect", members=members)
    record = Record(key=b"\0\2\0\1c", value=b"\0\3" + value)
    responses = [
        {
            "topic": "__consumer_offsets",
            "partitions": [
                {"partition_index": 0, "records": build_records([new_batch([record])])},
            ],
        }
    ]
    connection.client(request_frame(FETCH, 12, 2)).broker(
        response_frame(FETCH, 12, 2, responses=responses)
    )


def telemetry(connection: WireConnection) -> None:
    connection.client(request_frame(72, 0, 1, metrics=SECRET)).broker(response_frame(72, 0, 1))


def unknown_tags(connection: WireConnection) -> None:
    tag = b"\1\x4d" + bytes([len(SECRET)]) + SECRET
    heartbeat = request_frame(12, 4, 1, group_id="g", member_id="m")[4:]
    connection.client(sized(heartbeat[:-1] + tag)).broker(
        sized(response_frame(12, 4, 1)[4:-1] + tag)
    )


def orphans(connection: WireConnection) -> None:
    """Responses without requests, and an unknown API."""
    connection.client(request_frame(12, 4, 1), sized(b"\x02\x15\0\0\0\0\0\2\0\1c" + SECRET))
    connection.broker(response_frame(12, 4, 1), response_frame(38, 2, 3, token_id="t", hmac=SECRET))
    entry = {"name": "ssl.key.password", "value": SECRET.decode()}
    connection.broker(
        response_frame(32, 4, 4, results=[{"resource_name": "1", "configs": [entry]}])
    )
    connection.client(request_frame(12, 4, 5)).broker(response_frame(12, 4, 5))


def cut_off(connection: WireConnection) -> None:
    """The capture ends within the message."""
    whole = request_frame(51, 0, 1, upsertions=[CREDENTIAL, CREDENTIAL])
    connection.client(request_frame(12, 4, 1), whole[:-5])


SCENES = [
    plain_raw,
    plain,
    scram_raw,
    scram,
    bearer,
    delegation_tokens,
    scram_credentials,
    configs,
    envelope,
    cluster_metadata,
    cluster_metadata_by_id,
    settings_of_others,
    json_web_token,
    error_texts,
    urls,
    telemetry,
    unknown_tags,
    orphans,
    damaged,
    cut_off,
]

COMMANDS = [
    ["dissect"],
    ["dissect", "-V"],
    ["dissect", "-x"],
    ["dissect", "-V", "-x"],
    ["dissect", "-T", "ndjson"],
    ["dissect", "-T", "parquet"],
    ["pairs"],
    *(["pairs", "-T", form, "--bodies"] for form in ("ndjson", "csv", "parquet")),
    *(["records", "-T", form] for form in ("table", "ndjson", "csv", "parquet")),
    *(["streams", "-T", form] for form in ("table", "ndjson")),
    *(["stats", "-T", form] for form in ("table", "ndjson")),
    ["stats", "--by", "client,topic,error", "--topics", "--clients"],
    ["groups"],
]
FIELDS = [
    "request.auth_bytes",
    "response.auth_bytes",
    "request.hmac",
    "response.hmac",
    "response.tokens.hmac",
    "request.upsertions.salt",
    "request.upsertions.salted_password",
    "request.resources.configs.value",
    "request.topics.configs.value",
    "response.results.configs.value",
    "response.results.configs.synonyms.value",
    "request.request_data",
    "response.response_data",
    "problems",
]
NOT_IN_FIELDS = (
    *(cluster_metadata, cluster_metadata_by_id, error_texts),
    *(urls, telemetry, unknown_tags),
)
COMMANDS.append(["dissect", "-T", "fields", *(word for name in FIELDS for word in ("-e", name))])


def seen(done: Done, file: Path) -> bool:
    """Return whether the output of a command has the secret, in any encoding."""
    if not file.exists():
        data = (done.out + done.err).encode()
    elif file.read_bytes()[:4] == b"PAR1":
        data = b"".join(_cells(polars.read_parquet(file)))
    else:
        data = file.read_bytes()
    dumped = b"".join(
        map(bytes.fromhex, re.findall(r"(?m)^[0-9a-f]{4,}  ([0-9a-f ]{48,50})", done.out))
    )
    # Base64 has three alignments.
    texts = [SECRET, SECRET.hex().encode(), *_base64_forms(SECRET), *_base64_forms(SALT)]
    texts += [SALT, SALT.hex().encode()]
    # Parts of a secret are secret too.
    texts += [SECRET[:8], SECRET[-8:], SECRET[:8].hex().encode(), SECRET[-8:].hex().encode()]
    return any(text in data or text in dumped for text in texts)


def _cells(table: polars.DataFrame) -> Iterator[bytes]:
    for row in table.rows():
        for value in row:
            yield value if isinstance(value, bytes) else repr(value).encode()


def _base64_forms(data: bytes) -> list[bytes]:
    return [base64.b64encode(bytes(n) + data)[4:-4] for n in range(3)]


def capture(play: Callable[[WireConnection], None], path: Path) -> str:
    wire = tcp_captures.Wire()
    play(wire.connect().syn())
    return tcp_captures.write(path, wire.packets)


@pytest.mark.thinned(16)
@pytest.mark.parametrize("play", SCENES)
def test_no_command_shows_secrets(
    good: Run, tmp_path: Path, play: Callable[[WireConnection], None]
) -> None:
    path = capture(play, tmp_path / "a.pcap")
    for command in COMMANDS:
        file = tmp_path / "out"
        file.unlink(missing_ok=True)
        to_file = ["-o", file] if "parquet" in command else []
        assert not seen(good(*command, path, *to_file), file), command


@pytest.mark.thinned(4)
@pytest.mark.parametrize("play", SCENES)
def test_secrets_are_shown_on_request(
    good: Run, tmp_path: Path, play: Callable[[WireConnection], None]
) -> None:
    path = capture(play, tmp_path / "a.pcap")
    none = tmp_path / "none"
    assert seen(good("dissect", "-x", "--show-secrets", path), none)
    assert seen(good("dissect", "-V", "--show-secrets", path), none)
    if play in (plain_raw, scram_raw, orphans, damaged, cut_off):
        return  # without a body
    for command in COMMANDS:
        if command[0] in ("dissect", "pairs") and ("ndjson" in command or "fields" in command):
            if play in NOT_IN_FIELDS and "fields" in command:
                continue
            assert seen(good(*command, path, "--show-secrets"), none), command


@pytest.mark.parametrize("play", [cluster_metadata, cluster_metadata_by_id])
def test_records_of_internal_topics_are_shown_on_request(
    good: Run, tmp_path: Path, play: Callable[[WireConnection], None]
) -> None:
    path = capture(play, tmp_path / "a.pcap")
    for form in ("table", "ndjson", "csv"):
        assert seen(good("records", "-T", form, path, "--show-secrets"), tmp_path / "none")
    file = tmp_path / "out"
    good("records", "-T", "parquet", path, "--show-secrets", "-o", file)
    assert seen(Done(0, "", ""), file)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("play", SCENES)
def test_written_streams_are_blanked(
    good: Run, tmp_path: Path, play: Callable[[WireConnection], None]
) -> None:
    wire = tcp_captures.Wire()
    connection = wire.connect().syn()
    play(connection)
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    good("streams", path, "--write", tmp_path / "masked")
    good("streams", path, "--write", tmp_path / "shown", "--show-secrets")
    for side, name in enumerate(("0-a.bin", "0-b.bin")):
        sent = bytes(connection.sent[side])
        shown = tmp_path / "shown" / name
        assert (shown.read_bytes() if shown.exists() else b"") == sent
        if sent:
            masked = tmp_path / "masked" / name
            assert not seen(Done(0, "", ""), masked)
            assert len(masked.read_bytes()) == len(sent)
            kept = sum(a == b for a, b in zip(masked.read_bytes(), sent, strict=True))
            assert kept >= 4, "everything is blanked"


def test_sorting_by_a_masked_value(good: Run, tmp_path: Path) -> None:
    path = capture(cluster_metadata, tmp_path / "a.pcap")
    done = good("records", path, "-T", "ndjson", "--sort", "value,offset")
    assert len(done.rows) == 9
    assert not seen(done, tmp_path / "none")


def test_seen_finds_secrets_in_any_encoding(tmp_path: Path) -> None:
    none = tmp_path / "none"
    for data in (b"x" + SECRET, SALT, SECRET.hex().encode(), base64.b64encode(b"ab" + SECRET)):
        assert seen(Done(0, f"..{data.decode()}..", ""), none)
    assert seen(Done(0, "\n".join(hexdump(b"abcdefghijk" + SECRET)), ""), none)
    table = io.BytesIO()
    polars.DataFrame({"a": [b"..." + SECRET]}).write_parquet(table)
    none.write_bytes(table.getvalue())
    assert seen(Done(0, "", ""), none)
    assert not seen(Done(0, "nothing", "at all"), tmp_path / "other")


@pytest.mark.parametrize("shown", [False, True])
def test_only_the_owner_can_read_a_file_with_secrets(tmp_path: Path, shown: bool) -> None:
    path = capture(plain, tmp_path / "a.pcap")
    command = [sys.executable, "-m", "dissector", "pairs", path, "-o", str(tmp_path / "out")]
    subprocess.run(command + ["--show-secrets"] * shown, check=True)
    assert bool((tmp_path / "out").stat().st_mode & 0o077) is not shown
