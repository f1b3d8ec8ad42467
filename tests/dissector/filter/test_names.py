"""Names in filters: functions, slices, quantifiers, times, and the names of Wireshark."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from dissector import open_capture
from dissector.errors import FilterError
from dissector.filter import field_list, parse, resolve
from dissector.filter import wireshark_names as wireshark
from dissector.filter.names import wireshark_list
from dissector.protocol.records import Record, build_records, new_batch
from tests.corpus import CAPTURES
from tests.dissector.filter.filter_rows import FakeRow, produce

TRUE = [
    "len(client_id) == 7",
    "len(request.topic_data.name) == 4",
    'upper(client_id) == "RDKAFKA"',
    "lower(api) == produce",
    'client_id[0:2] == "rd"',
    'client_id[-5:] == "kafka"',
    'client_id[2] == "k" and client_id[0-1] == rd',
    'upper(client_id)[0:2] == "RD"',
    "len(client_id[1:]) in {5..6}",
    "count(errors) == 2",
    "count(request.topic_data.name) == 2 and count(request.transactional_id) == 0",
    "request.topic_data.partition_data.records[0:1] == 00",
    "any error == 6",
    "not all error == 6",
    "all request.topic_data.name matches '[a-z]'",
    "any request.topic_data.name != orders",
    "not request.topic_data.name != orders",
    "all response.responses.partition_responses.error_code < 7",
    "not all response.responses.partition_responses.error_code < 6",
    "not all request.group_id == x",
    "client_id ~ 'KAFKA$'",
    "api == 0 and api in {0, 3}",
    'request_time_ns >= "2023-11-14 22:13:20Z"',
    'request_time_ns == "2023-11-14T22:13:20+00:00"',
    'request_time_ns < "2023-11-14 22:13:20.000000001 UTC"',
    'response_time_ns == "Nov 14, 2023 22:13:20.001Z"',
    "request_time_ns > 2023-11-14",
    "tcp and ip and frame and kafka",
    "kafka.required_acks == -1 and kafka.timeout == 500",
    "kafka.partition_id == 1 and not kafka.partition_id == 2",
    "kafka.len == 345 and kafka.topic_name[0:3] == ord",
]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("text", TRUE)
def test_a_true_filter(text: str) -> None:
    chosen = parse(text)
    assert chosen.matches(produce())
    assert parse(str(chosen.node)).node == chosen.node
    assert not parse(f"not ({text})").matches(produce())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("len(api_version) > 1", "len() takes text or bytes; api_version is a number"),
        ("size(api) > 1", "no function is called 'size'"),
        ("client_id[x] == 1", "[x] is not a slice; write [offset:length] or [first-last]"),
        ("latency_ms[0:2] == 1", "a slice takes text or bytes"),
        ("all topic", "a comparison is missing after 'all' and a name"),
        ("len(topic == 1", "')' is missing"),
        ("frame.time > yesterday", 'yesterday is not a time, such as "2026-11-23 13:57:58.5"'),
        ("frame.time > '2026-13-01'", "is not a time"),
        ("kafka.bad_varint", "a mark of Wireshark for damaged bytes"),
        ("kafka.groupid", "did you mean kafka."),
        ("header.trace == 1", "it is a column of `kafkashark records`"),
    ],
)
def test_wrong_names_are_explained(text: str, message: str) -> None:
    with pytest.raises(FilterError) as raised:
        parse(text)
    assert message in str(raised.value)


def test_records_are_searched_decompressed() -> None:
    batch = new_batch(
        [Record(key=b"anna", value=b"a blue lamp", headers=(("trace", b"\x07"),), timestamp=5)] * 9,
        codec="gzip",
    )
    records = build_records([batch])
    body = {"topic_data": [{"partition_data": [{"index": 0, "records": records}]}]}
    row = FakeRow(produce().columns, {"request": body, "response": None})
    field = "request.topic_data.partition_data.records"
    for text in (
        f'{field} contains "blue lamp"',
        f"{field} matches 'BLUE L.MP'",
        'kafka.message_value contains "lamp"',
        "kafka.message_key == anna and kafka.header_key == trace and kafka.header_value == 07",
        "kafka.batch_codec == 1 and kafka.batch_codec == gzip and kafka.message_magic == 2",
        'kafka.message_timestamp < "1970-01-01 00:00:01Z"',
        "kafka.batch_last_offset_delta == 8 and kafka.batch_crc > 0",
        "count(kafka.message_key) == 9 and kafka.batch_control_batch == false",
    ):
        assert parse(text).matches(row), text
    assert b"lamp" not in records
    assert not parse(f'{field} contains "red"').matches(row)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('headers == "user=anna"', True),
        ("headers contains anna", True),
        ("headers == anna", False),
        ("headers == user", False),
        ("headers.key == user and headers.key == trace", True),
        ("headers.key == anna", False),
        ("headers.value == 07", True),
        ("headers.value == 08", False),
        ("header.user == anna", True),
        ("header.user == null", False),
        ("header.none", False),
        ("count(headers) == 2", True),
    ],
)
def test_headers_of_a_record(text: str, expected: bool) -> None:
    headers = [{"key": "trace", "value": b"\x07"}, {"key": "user", "value": b"anna"}]
    row = FakeRow({**produce().columns, "headers": headers})
    assert parse(text, records=True).matches(row) is expected


TSHARK = shutil.which("tshark")
needs_tshark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")


@pytest.mark.long
@needs_tshark
def test_every_tshark_name_is_supported_or_has_a_reason() -> None:
    done = subprocess.run([str(TSHARK), "-G", "fields"], capture_output=True, text=True, check=True)
    names = {line.split("\t")[2] for line in done.stdout.splitlines() if "\tkafka." in line}
    names = {name for name in names if name.startswith("kafka.")}
    ours = {name for name, _, _ in wireshark_list()}
    assert names <= ours | {"kafka.truncated_content"}
    assert len(ours) >= 160


def test_names_of_wireshark_have_values() -> None:
    for name in (*wireshark.COLUMNS, *wireshark.BODIES, *wireshark.RECORDS, *wireshark.BATCHES):
        found = resolve(name)
        assert found.sources, name
        assert {kind.title for kind in found.kinds} != {"a struct"}, name
    for name in wireshark.WITHOUT_COUNTERPART:
        with pytest.raises(FilterError):
            parse(name)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("records", [False, True])
def test_listed_names_are_valid(records: bool) -> None:
    listed = [name for name, _, _ in field_list(records=records)]
    assert len(set(listed)) == len(listed) > 900
    for name in listed[:400]:
        resolve(name.replace("NAME", "trace"), records=records)


DIFFERENTIAL = [
    "frame.number in {120..400}",
    "frame.len > 250",
    "frame.time_relative >= 1.5 && frame.time_relative < 3",
    'frame.time > "2026-11-21 09:46:35"',
    "tcp.port == 21863",
    "tcp.port != 21863",
    "any tcp.port != 21863",
    "tcp.stream in {3..7}",
    "kafka.request_key == 3 || kafka.response_key == 3",
    'kafka.client_id == "shop"',
    'kafka.client_id matches "^SHOP"',
    'kafka.client_id[0:4] == "bill"',
    'upper(kafka.client_id) == "SHOP"',
    "len(kafka.client_id) > 7",
    "kafka.correlation_id < 3",
    'kafka.consumer_group == "billing" && kafka.request_key == 11',
    "kafka.session_timeout >= 1000",
    'kafka.coordinator_key contains "bill"',
    "kafka.generation_id == 1",
    'kafka.client_software_version matches "^2"',
]


@pytest.mark.long
@needs_tshark
def test_the_same_packets_as_tshark() -> None:
    """An exchange passes if tshark shows the last packet of one of its messages."""
    path = next(path for path in CAPTURES if path.name == "demo.pcap")
    capture = open_capture(path)
    capture.options.packet_facts = frozenset(("lengths", "comments"))
    filters = {text: parse(text) for text in DIFFERENTIAL}
    exchanges, passed = [], {text: set[int | None]() for text in DIFFERENTIAL}
    for exchange in capture:  # packet lengths are available while their window is read
        exchanges.append(exchange)
        for text, chosen in filters.items():
            if chosen.matches(exchange):
                passed[text].add(exchange.request_packet)
    ports = {exchange.broker.rpartition(":")[2] for exchange in exchanges}
    decode = [word for port in ports for word in ("-d", f"tcp.port=={port},kafka")]
    for text in DIFFERENTIAL:
        command = [str(TSHARK), "-r", str(path), *decode, "-Y", f"kafka && ({text})"]
        shown = subprocess.run(
            [*command, "-T", "fields", "-e", "frame.number"],
            capture_output=True,
            text=True,
            check=True,
        )
        packets = set(map(int, shown.stdout.split()))
        ours = passed[text]
        theirs = {
            exchange.request_packet
            for exchange in exchanges
            if packets & {exchange.request_packet, exchange.response_packet}
        }
        assert ours == theirs, text
        assert ours, text
