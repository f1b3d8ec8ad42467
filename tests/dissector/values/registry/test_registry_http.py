"""Exchanges with a registry in the bytes of connections, and a registry that is asked."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import UsageError
from dissector.public import open_capture
from dissector.values.registry.http_exchanges import HttpExchanges
from dissector.values.registry.registry_answers import RegistryAnswers
from dissector.values.registry.registry_client import RegistryClient
from dissector.values.schemas.schema_store import SchemaStore
from tests.dissector.values.value_captures import produce_values
from tests.tcp_captures import Wire, write

GUID = "63836c98-85e0-4bef-840b-2615e9991c8b"
LONG = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'
PROTO = 'syntax = "proto3"; message M { int32 a = 1; }'


def request(target: str, body: Any = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    size = f"Content-Length: {len(content)}\r\n" if content else ""
    return f"{method} {target} HTTP/1.1\r\nHost: registry\r\n{size}\r\n".encode() + content


def response(body: Any, *, form: str = "plain", status: str = "200 OK") -> bytes:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\n"
    if form == "gzip":
        content = gzip.compress(content)
        head += "Content-Encoding: gzip\r\n"
    if form == "chunked":
        pieces = [content[at : at + 7] for at in range(0, len(content), 7)]
        chunks = b"".join(b"%x;x=1\r\n%s\r\n" % (len(each), each) for each in pieces)
        return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + b"0\r\n\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


EXCHANGES = [
    (request("/schemas/ids/7"), {"schema": LONG}, [7]),
    (request("/schemas/ids/8?subject=orders"), {"schema": PROTO, "schemaType": "PROTOBUF"}, [8]),
    (
        request("/api/ccompat/v7/subjects/o-value/versions/latest"),
        {"subject": "o-value", "version": 2, "id": 9, "schema": LONG},
        [9],
    ),
    (request("/subjects/o-value/versions", {"schema": LONG}), {"id": 10}, [10]),
    (
        request("/subjects/o-value", {"schema": LONG, "schemaType": "AVRO"}),
        {"subject": "o-value", "version": 1, "id": 11, "schema": LONG},
        [11],
    ),
    (request("/schemas"), [{"subject": "a", "version": 1, "id": 12, "schema": LONG}], [12]),
    (request(f"/schemas/guids/{GUID}"), {"schema": LONG}, [UUID(GUID)]),
    (request("/apis/registry/v3/ids/globalIds/13"), LONG, [13]),
    (request("/apis/registry/v2/ids/contentIds/14"), PROTO, [14]),
    (request("/schemas/ids/15/schema"), LONG, [15]),
    (
        request("/apis/registry/v2/groups/default/artifacts?ifExists=RETURN", json.loads(LONG)),
        {"id": "o-value", "version": "2", "globalId": 16, "contentId": 3},
        [16],
    ),
    (
        request(
            "/apis/registry/v3/groups/default/artifacts",
            {"artifactId": "o", "firstVersion": {"content": {"content": PROTO}}},
        ),
        {"artifact": {"artifactId": "o"}, "version": {"artifactId": "o", "globalId": 17}},
        [17],
    ),
    (
        request(
            "/apis/registry/v3/groups/default/artifacts/o/versions",
            {"content": {"content": LONG, "references": []}},
        ),
        {"artifactId": "o", "version": "3", "globalId": 18},
        [18],
    ),
    (
        request("/", {"SchemaVersionId": GUID}),
        {"SchemaVersionId": GUID, "SchemaDefinition": LONG, "DataFormat": "AVRO"},
        [UUID(GUID)],
    ),
]


@pytest.mark.parametrize("form", ["plain", "gzip", "chunked"])
@pytest.mark.parametrize("size", [1, 10, 10_000])
def test_schemas_in_exchanges(form: str, size: int) -> None:
    store = SchemaStore()
    exchanges = HttpExchanges(RegistryAnswers(store).see)
    asked = request("/other") + b"".join(each[0] for each in EXCHANGES)
    answered = response("?", status="404 Not Found")
    answered += b"".join(response(each[1], form=form) for each in EXCHANGES)
    for at in range(0, len(asked), size):
        exchanges.feed(3, 0, asked[at : at + size], 0)
    for at in range(0, len(answered), size):
        exchanges.feed(3, 1, answered[at : at + size], 0)
    for _, _, refs in EXCHANGES:
        for ref in refs:
            found = store.find(ref)
            assert found is not None, ref
            is_proto = found.text == PROTO
            assert found.kind == ("protobuf" if is_proto else "avro")
            assert found.decoder.value(b"\x08\x05" if is_proto else b"\x0a", 0) == {"a": 5}


def test_a_gap_and_other_protocols_end_the_reading() -> None:
    seen: list[object] = []
    exchanges = HttpExchanges(lambda *each: seen.append(each))
    exchanges.feed(1, 0, b"\x00\x00\x00\x05", 4)
    exchanges.feed(1, 0, request("/schemas"), 0)
    exchanges.feed(2, 0, request("/schemas"), 0)
    exchanges.feed(2, 1, None, 100)
    exchanges.feed(2, 1, response([]), 0)
    exchanges.feed(3, 0, b"GET nothing\r\n\r\n", 0)
    exchanges.feed(4, 1, response([]), 0)
    assert seen == []
    exchanges.feed(5, 1, request("/schemas"), 0)
    exchanges.feed(5, 0, response([]), 0)
    assert len(seen) == 1
    exchanges.feed(6, 0, b"\x16\x03\x01", 3)
    exchanges.feed(6, 0, None, -1)  # the plaintext of a TLS connection
    exchanges.feed(6, 0, request("/schemas"), 0)
    exchanges.feed(6, 1, response([]), 0)
    assert len(seen) == 2


@given(
    pieces=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(
                [
                    b"GET / HTTP/1.1\r\n",
                    b"HTTP/1.1 200 OK\r\n",
                    b"\r\n",
                    b"Content-Length: 5\r\n",
                    b"ffffffff\r\n",
                    b"Transfer-Encoding: chunked\r\n",
                    b"5\r\nabcde\r\n",
                    b"0\r\n\r\n",
                    b"Content-Length: 99999999\r\n",
                    b"Content-Length: -1\r\n",
                    b"{}",
                    b"\x00",
                    b"Content-Encoding: gzip\r\n",
                ]
            ),
        ),
        max_size=30,
    )
)
def test_hostile_exchanges_raise_nothing(pieces: list[tuple[int, bytes]]) -> None:
    exchanges = HttpExchanges(RegistryAnswers(SchemaStore()).see)
    for side, content in pieces:
        exchanges.feed(1, side, content, len(content))


def test_a_registry_in_the_capture_gives_the_rows_of_its_dump(tmp_path: Path) -> None:
    wire = Wire()
    value = b"\x00\x00\x00\x00\x07\x0a"
    produce_values(wire, "orders", [value])
    connection = wire.connect(50_900, broker_port=8081).syn()
    connection.client(request("/schemas/ids/7")[:20], request("/schemas/ids/7")[20:])
    connection.broker(response({"schema": LONG}, form="chunked"))
    path = tmp_path / "a.pcap"
    write(path, wire.packets)
    rows = open_capture(path, values=[], ports={9092}).records()
    assert rows["value_decoded"].to_list() == ['{"a": 5}']
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps([{"id": 7, "schema": LONG}]))
    alone = Wire()
    produce_values(alone, "orders", [value])
    other = tmp_path / "b.pcap"
    write(other, alone.packets)
    same = open_capture(other, values=[dump]).records()
    names = ["value_format", "value_schema", "value_decoded", "value_problem"]
    assert rows.select(names).equals(same.select(names))


class Handler(BaseHTTPRequestHandler):
    """A registry with one schema, which refers to another."""

    asked: list[str]
    answers: dict[str, Any]

    def do_GET(self) -> None:
        self.asked.append(f"{self.path} {self.headers.get('Authorization', '')}".strip())
        found = self.answers.get(self.path)
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/schemas/ids/7")
            self.end_headers()
            return
        self.send_response(404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def registry() -> Iterator[tuple[str, type[Handler]]]:
    user = '{"type": "record", "name": "User", "fields": [{"name": "id", "type": "int"}]}'
    order = '{"type": "record", "name": "O", "fields": [{"name": "user", "type": "User"}]}'

    class Mine(Handler):
        asked: list[str] = []  # noqa: RUF012 (a new class for each test)
        answers: dict[str, Any] = {  # noqa: RUF012
            "/schemas/ids/7": {
                "schema": order,
                "references": [{"name": "User", "subject": "u/s", "version": 1}],
            },
            "/schemas/ids/7/versions": [{"subject": "orders-value", "version": 3}],
            "/subjects/u%2Fs/versions/1": {
                "subject": "u/s",
                "version": 1,
                "id": 1,
                "schema": user,
            },
        }

    server = HTTPServer(("127.0.0.1", 0), Mine)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Mine
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_registry_is_asked_once_for_each_schema(
    registry: tuple[str, type[Handler]], tmp_path: Path
) -> None:
    url, handler = registry
    wire = Wire()
    known, unknown = b"\x00\x00\x00\x00\x07\x0a", b"\x00\x00\x00\x00\x63\x0a\x0a"
    produce_values(wire, "orders", [known, unknown, known, unknown])
    path = tmp_path / "a.pcap"
    write(path, wire.packets)
    rows = open_capture(path, values=[url], values_user="ann:secret").records()
    assert rows["value_schema"].to_list()[:2] == ["orders-value v3", "id 99"]
    assert rows["value_decoded"].to_list()[0] == '{"user": {"id": 5}}'
    login = "Basic YW5uOnNlY3JldA=="
    paths = ["/schemas/ids/7", "/subjects/u%2Fs/versions/1", "/schemas/ids/7/versions"]
    assert handler.asked == [f"{each} {login}" for each in [*paths, "/schemas/ids/99"]]


def test_a_registry_is_not_asked_for_endless_ids(registry: tuple[str, type[Handler]]) -> None:
    url, handler = registry
    client = RegistryClient(url)
    store = SchemaStore()
    for number in range(100, 3_000):
        client.add(store, number)
    assert store.problems == [f"{url}: more than 1,000 ids are unknown there"]
    assert len(handler.asked) == 1_001


def test_a_registry_that_does_not_answer_is_asked_no_more(
    registry: tuple[str, type[Handler]],
) -> None:
    client = RegistryClient("http://127.0.0.1:1", timeout_s=1)
    client.add(SchemaStore(), 5)
    assert "does not answer" in client.problem
    client.add(SchemaStore(), 6)
    url, handler = registry
    moved = RegistryClient(url)
    assert moved.get("/moved") is None
    assert moved.problem.endswith("status 302")
    assert handler.asked == ["/moved"]


@pytest.mark.parametrize(
    ("url", "user", "reason"),
    [
        ("http://", "", "not the URL of a registry"),
        ("http://[", "", "not the URL of a registry"),
        ("http://ann:secret@host", "", "--values-user"),
        ("http://host", "ann:secret", "by https only"),
    ],
)
def test_wrong_urls_are_refused(url: str, user: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refused:
        RegistryClient(url, user)
    assert "secret" not in str(refused.value)
