"""
No output of any command shows a credential: each form of text, in each place, in each output.

The marker is the only thing that must not be there; `--show-secrets` shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dissector.protocol.records import Record, build_records, new_batch
from tests import tcp_captures
from tests.default_frames import sized
from tests.dissector.cli.cli_traffic import FETCH, METADATA, PRODUCE, request_frame, response_frame
from tests.dissector.cli.conftest import Done, good, run
from tests.dissector.cli.test_secrets import COMMANDS, SECRET, handshake, seen
from tests.tcp_captures import WireConnection

__all__ = ["good", "run"]

MARKER = SECRET.decode()

FORMS = [
    f"http://admin:{MARKER}@host:8083/",
    f"http%3A%2F%2Fadmin%3A{MARKER}%40host",
    f"Bearer {MARKER}",
    f"-----BEGIN PRIVATE KEY-----\n{MARKER}",
    f'{{"password": "{MARKER}"}}',
    rf"{{\"password\": \"{MARKER}\"}}",
    rf"{{\\\"password\\\": \\\"{MARKER}\\\"}}",
    rf"{{\u0022secret\u0022:\u0022{MARKER}\u0022}}",
    f'{{"name": "db.password", "value": "{MARKER}"}}',
    f"<password>{MARKER}</password>",
    f"<login password='{MARKER}'/>",
    f'<entry key="password">{MARKER}</entry>',
    f"&lt;password&gt;{MARKER}",
    f"password%3D{MARKER}",
    f"password%253D{MARKER}",
    f"--password {MARKER}",
    f"--password={MARKER}",
    f'["--token","{MARKER}"]',
    f"curl -u admin:{MARKER} http://host",
    f"https://x.blob.core.windows.net/a?sv=2022&sig={MARKER}",
]


def every_place(connection: WireConnection) -> None:
    """Put each form where clients and brokers write texts."""
    offers = {"client_software_version": "1"}
    for at, form in enumerate(FORMS):
        number = 10 * at
        connection.client(
            request_frame(18, 3, number, client_id=form, client_software_name=form, **offers)
        ).broker(response_frame(18, 3, number))
        connection.client(
            request_frame(METADATA, 8, number + 1, client_id=form, topics=[{"name": form}])
        ).broker(response_frame(METADATA, 8, number + 1, topics=[{"name": form, "error_code": 3}]))
        member = {"group_id": form, "member_id": form, "group_instance_id": form}
        protocols = [{"name": "range", "metadata": form.encode()}]
        connection.client(
            request_frame(
                *(11, 5, number + 2),
                client_id=form,
                group_id=form,
                member_id=form,
                group_instance_id=form,
                protocol_type="consumer",
                protocols=protocols,
            )
        ).broker(
            response_frame(
                *(11, 5, number + 2),
                generation_id=1,
                protocol_name="range",
                leader=form,
                member_id=form,
                members=[{"member_id": form, "metadata": form.encode()}],
            )
        )
        partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": form}
        commit = [{"name": form, "partitions": [partition]}]
        connection.client(
            request_frame(8, 7, number + 3, client_id=form, **member, topics=commit)
        ).broker(response_frame(8, 7, number + 3, topics=[{"name": form, "partitions": []}]))
        leave = {"member_id": form, "group_instance_id": form, "reason": form}
        connection.client(
            request_frame(13, 5, number + 4, client_id=form, group_id=form, members=[leave])
        ).broker(response_frame(13, 5, number + 4))
        created = {"name": form, "error_code": 40, "error_message": form}
        connection.client(
            request_frame(19, 5, number + 5, client_id=form, topics=[{"name": form}])
        ).broker(response_frame(19, 5, number + 5, topics=[created]))
        connection.client(
            request_frame(22, 0, number + 6, client_id=form, transactional_id=form)
        ).broker(response_frame(22, 0, number + 6, error_code=53))
        records = build_records([new_batch([Record(value=b"shown")])])
        data = {"name": form, "partition_data": [{"index": 0, "records": records}]}
        connection.client(
            request_frame(PRODUCE, 7, number + 7, client_id=form, acks=1, topic_data=[data])
        ).broker(response_frame(PRODUCE, 7, number + 7, responses=[{"name": form}]))
        connection.client(request_frame(12, 3, number + 8, client_id=form, **member))
        connection.broker(response_frame(12, 3, number + 8, error_code=27))


CONNECTOR = json.dumps(
    {
        "properties": {
            "connector.class": "JdbcSource",
            "connection.password": MARKER,
            "connection.url": f"jdbc:postgresql://u:{MARKER}@db/x",
            "transforms": {"name": "api.key", "value": MARKER},
        }
    }
).encode()
SESSION_KEY = json.dumps({"key": MARKER, "algorithm": "HmacSHA256"}).encode()
CONNECT_ID = UUID(int=77)


def connect_configs(connection: WireConnection) -> None:
    """Write and read settings of connectors, by the topic's name and by its id."""
    topic = {"name": "connect-configs", "topic_id": CONNECT_ID, "partitions": []}
    connection.client(request_frame(METADATA, 12, 1)).broker(
        response_frame(METADATA, 12, 1, topics=[topic])
    )
    for number, codec in enumerate(("none", "gzip"), 2):
        some = [Record(key=b"connector-x", value=CONNECTOR)]
        some.append(Record(key=b"session-key", value=SESSION_KEY))
        records = build_records([new_batch(some, codec=codec)])
        data = {"name": "connect-configs", "partition_data": [{"index": 0, "records": records}]}
        connection.client(request_frame(PRODUCE, 9, number, acks=1, topic_data=[data]))
        connection.broker(response_frame(PRODUCE, 9, number, responses=[]))
        named = {"topic": "connect-configs"}
        for version, name in ((12, named), (13, {"topic_id": CONNECT_ID})):
            content = {**name, "partitions": [{"partition_index": 0, "records": records}]}
            at = 10 * number + version
            connection.client(request_frame(FETCH, version, at, topics=[name]))
            connection.broker(response_frame(FETCH, version, at, responses=[content]))


def raw_token_like_a_request(connection: WireConnection) -> None:
    """After SaslHandshake v0, send a token with the bytes of a request."""
    handshake(connection, "CUSTOM", 0)
    connection.client(request_frame(12, 0, 7, client_id=MARKER, group_id=MARKER, member_id=MARKER))
    connection.broker(sized(b"who are you, " + SECRET))


def raw_token_like_a_produce(connection: WireConnection) -> None:
    """The same, with the bytes of a request that expects no response."""
    handshake(connection, "CUSTOM", 0)
    connection.client(request_frame(PRODUCE, 3, 7, client_id=MARKER, transactional_id=MARKER))
    connection.broker(sized(b"no" + SECRET))


def login(connection: WireConnection, mechanism: str, *tokens: bytes) -> None:
    handshake(connection, mechanism, 1)
    for number, token in enumerate(tokens, 2):
        connection.client(request_frame(36, 2, number, auth_bytes=token))
        connection.broker(response_frame(36, 2, number))


def repeat(connection: WireConnection, secret: str = MARKER) -> None:
    """Repeat a secret where no form gives it away."""
    connection.client(request_frame(METADATA, 8, 90, client_id=secret, topics=[{"name": secret}]))
    connection.broker(response_frame(METADATA, 8, 90, topics=[{"name": secret, "error_code": 3}]))
    connection.client(request_frame(19, 5, 91, topics=[{"name": "t"}]))
    error = {"name": "t", "error_code": 40, "error_message": f"no {secret} here"}
    connection.broker(response_frame(19, 5, 91, topics=[error]))
    connection.client(request_frame(36, 2, 92, auth_bytes=b"x"))
    refused = f"authentication failed: {secret}"
    connection.broker(response_frame(36, 2, 92, error_code=58, error_message=refused))
    protocols = [{"name": "range", "metadata": b"\0" + secret.encode()}]
    connection.client(
        request_frame(11, 5, 93, client_id=secret, group_id=secret, protocols=protocols)
    )
    connection.broker(response_frame(11, 5, 93, error_code=79, member_id=secret))
    connection.client(request_frame(12, 3, 94, group_id=secret, member_id=f"a-{secret}"))
    connection.broker(response_frame(12, 3, 94, error_code=25))


def repeated_password(connection: WireConnection) -> None:
    login(connection, "PLAIN", b"\0alice\0" + SECRET)
    repeat(connection)


def repeated_raw_password(connection: WireConnection) -> None:
    handshake(connection, "PLAIN", 0).client(sized(b"\0alice\0" + SECRET)).broker(sized(b""))
    repeat(connection)


def repeated_bearer(connection: WireConnection) -> None:
    login(connection, "OAUTHBEARER", b"n,,\1auth=Bearer " + SECRET + b"\1\1")
    repeat(connection)


def repeated_proof(connection: WireConnection) -> None:
    login(connection, "SCRAM-SHA-256", b"n,,n=alice,r=x", b"c=biws,r=xy,p=" + SECRET)
    repeat(connection)


def repeated_delegation_token(connection: WireConnection) -> None:
    connection.client(request_frame(38, 2, 1))
    connection.broker(response_frame(38, 2, 1, token_id="t", hmac=SECRET))
    repeat(connection)


SCENES = [
    every_place,
    connect_configs,
    raw_token_like_a_request,
    raw_token_like_a_produce,
    repeated_password,
    repeated_raw_password,
    repeated_bearer,
    repeated_proof,
    repeated_delegation_token,
]

MORE_COMMANDS = [
    *(["timeline", "-T", form] for form in ("text", "ndjson", "csv", "mermaid", "perfetto")),
    ["timeline", "-T", "parquet"],
    ["timeline", "--otlp"],
    *(["conform", "-T", form] for form in ("text", "ndjson", "sarif", "junit", "html")),
    *(["advise", "-T", form] for form in ("text", "ndjson", "sarif", "junit", "html")),
    ["report"],
    ["upgrade", "--to", "4.4"],
    ["groups", "-T", "ndjson"],
    ["stats", "--by", "client,topic", "--by", "software", "-T", "ndjson"],
    ["pairs", "-T", "ndjson", "--columns", "client_id,topics,upper(client_id)"],
    ["dissect", "-T", "fields", "-e", "client_id", "-e", "topics", "-e", "request.client_id"],
    ["streams", "--write"],
]

NO_OUTPUT_OPTION = (["timeline", "--otlp"], ["streams", "--write"])


def capture(folder: Path, *plays: Callable[[WireConnection], None]) -> str:
    """Write a capture with a connection for each play."""
    wire = tcp_captures.Wire()
    for port, play in enumerate(plays, 50_000):
        play(wire.connect(port).syn())
    return tcp_captures.write(folder / "a.pcap", wire.packets)


def outputs(command: list[str], path: str, run: Any, folder: Path, *more: str) -> list[Path]:
    """Run a command; return the files that it wrote, with what it printed."""
    folder.mkdir()
    out = folder / "out"
    binary = {"parquet", "perfetto", "report", "html"} & {*command}
    to_file = [out] if command in NO_OUTPUT_OPTION else ["-o", out] if binary else []
    # Captures come first: `--otlp` takes a file.
    done: Done = run(command[0], path, *command[1:], *to_file, *more)
    assert done.status in (0, 1, 2), done.err
    assert "bug" not in done.err
    (folder / "printed").write_text(done.out + done.err)
    return [each for each in folder.rglob("*") if each.is_file()]


def shows(command: list[str], files: list[Path]) -> bool:
    return any(seen(Done(0, each.read_text(errors="replace"), ""), each) for each in files)


def test_no_output_shows_a_secret(run: Any, tmp_path: Path) -> None:
    _check_none_is_shown(run, tmp_path, *SCENES)


@pytest.mark.long
@pytest.mark.parametrize("play", SCENES)
def test_no_output_shows_the_secret_of_a_scene(
    run: Any, tmp_path: Path, play: Callable[[WireConnection], None]
) -> None:
    _check_none_is_shown(run, tmp_path, play)


def _check_none_is_shown(run: Any, folder: Path, *plays: Callable[[WireConnection], None]) -> None:
    path = capture(folder, *plays)
    shown = [
        command
        for at, command in enumerate([*COMMANDS, *MORE_COMMANDS])
        if shows(command, outputs(command, path, run, folder / str(at)))
    ]
    assert not shown


@pytest.mark.long  # the mock leaves some requests unanswered
def test_no_report_of_a_replay_shows_a_secret(run: Any, tmp_path: Path) -> None:
    path = capture(tmp_path, *SCENES)
    for folder, more in ((tmp_path / "masked", ()), (tmp_path / "shown", ("--show-secrets",))):
        folder.mkdir()
        reports = [folder / f"report.{form}" for form in ("txt", "ndjson", "html", "xml")]
        options = [word for each in reports for word in ("--report", str(each))]
        pace = ("--speed", "max", "--timeout", "0.2")
        done: Done = run("replay", path, "--to", "mock", *pace, *options, *more)
        assert done.status in (0, 1), done.err
        (folder / "printed").write_text(done.out + done.err)
        found = [each.name for each in folder.iterdir() if MARKER in each.read_text()]
        assert bool(found) is bool(more), found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("play", SCENES)
def test_every_secret_is_shown_on_request(
    run: Any, tmp_path: Path, play: Callable[[WireConnection], None]
) -> None:
    path = capture(tmp_path, play)
    commands = [["dissect", "-V", "-x"], ["streams", "--write"]]
    if play not in (raw_token_like_a_request, raw_token_like_a_produce):
        commands += [["pairs", "-T", "ndjson", "--bodies"]]
    if play not in (raw_token_like_a_request, raw_token_like_a_produce, connect_configs):
        commands += [["dissect", "-T", "parquet"], ["pairs", "-T", "ndjson"]]
        commands += [["dissect"], ["timeline", "-T", "perfetto"], ["timeline", "-T", "ndjson"]]
    if play is connect_configs:
        commands += [["records", "-T", "ndjson"]]
    for at, command in enumerate(commands):
        assert shows(command, outputs(command, path, run, tmp_path / str(at), "--show-secrets")), (
            command
        )


def test_settings_of_connectors_are_shown_without_their_secrets(run: Any, tmp_path: Path) -> None:
    done = run("records", "-T", "ndjson", capture(tmp_path, connect_configs))
    value = json.loads(done.rows[0]["value"])
    assert value["properties"]["connector.class"] == "JdbcSource"
    assert value["properties"]["connection.password"] == "***"
    assert value["properties"]["connection.url"] == "***"
    assert value["properties"]["transforms"] == {"name": "api.key", "value": "***"}
    assert {row["value"] for row in done.rows if row["key"] == "session-key"} == {"***"}


@pytest.mark.parametrize(
    ("password", "text", "is_shown"),
    [
        ("abc", "abc", True),  # too short: it would be found nearly everywhere
        ("sesa", "sesa", False),
        ("sesa", "no sesa.", False),
        ("kafka", "kafka-python", True),  # a short one is found as a whole word only
        ("sesame-1", "xsesame-1x", False),
    ],
)
def test_short_passwords_are_found_as_words(
    run: Any, tmp_path: Path, password: str, text: str, is_shown: bool
) -> None:
    def play(connection: WireConnection) -> None:
        login(connection, "PLAIN", b"\0alice\0" + password.encode())
        connection.client(request_frame(METADATA, 8, 9, client_id=text))
        connection.broker(response_frame(METADATA, 8, 9))

    row = run("pairs", "-T", "ndjson", capture(tmp_path, play)).rows[-1]
    assert row["client_id"] == (text if is_shown else "***")


def test_a_secret_of_one_connection_is_none_of_another(run: Any, tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    repeated_password(wire.connect().syn())
    repeat(wire.connect(50_001).syn())
    path = tcp_captures.write(tmp_path / "a.pcap", wire.packets)
    rows = run("pairs", "-T", "ndjson", path).rows
    assert {row["client_id"] for row in rows if row["connection"] == 0} == {"shop", "***"}
    assert MARKER in {row["client_id"] for row in rows if row["connection"] == 1}


def test_requests_after_a_raw_login_are_shown_once_a_response_fits(
    run: Any, tmp_path: Path
) -> None:
    def play(connection: WireConnection) -> None:
        handshake(connection, "PLAIN", 0).client(sized(b"\0alice\0" + SECRET)).broker(sized(b""))
        connection.client(request_frame(METADATA, 8, 5, client_id="first"))
        connection.broker(response_frame(METADATA, 8, 5))
        connection.client(request_frame(METADATA, 8, 6, client_id="last"))

    rows = run("pairs", "-T", "ndjson", capture(tmp_path, play)).rows
    assert [(row["api"], row["client_id"]) for row in rows[-2:]] == [
        ("Metadata", "first"),
        ("Metadata", "last"),
    ]
