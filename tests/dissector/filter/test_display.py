from __future__ import annotations

import pytest

from dissector.filter import UnknownName, parse, resolve, values_of
from tests.dissector.filter.filter_rows import FakeRow, produce

TRUE = [
    "kafka",
    "api == Produce",
    "api == produce",
    'api eq "Produce"',
    "api != Fetch",
    "api in {Fetch, Produce}",
    "api in {Fetch Produce}",
    "api contains rod and api matches '^P.*e$'",
    "api_key == 0 and api_key == Produce and kafka.api_key < Fetch",
    "api_version ge 9 and api_version <= 0x9 and api_version == 9.0",
    "kafka.api_version in {3..9}",
    "api_version in {1, 2, 8..10}",
    "correlation_id==7&&kafka.correlation_id==7||api==Fetch",
    "latency_ms > .5 and latency_ms < 1e1 and latency_ms > -1",
    "status == answered",
    "status != orphan",
    "client_id == rdkafka and kafka.client_id == 'rdkafka'",
    'client_id matches "^rd" and client_id matches "(?i)KAFKA$"',
    # As in Wireshark: case-insensitive by default.
    'client_id matches "KAFKA$" and topic matches "^ORD" and error matches leader',
    'not client_id matches "(?-i)KAFKA$" and client_id matches "(?-i)kafka$"',
    'client_id < "s" and client_id > r',
    "client_id",
    "connection == 3 and tcp.stream == 3",
    'capture == "a.pcap"',
    # Lists: any element.
    "topic == orders and topics == orders and kafka.topic_name == orders",
    # `!=` means none, `!==` any, `===` all.
    "topic != other and topic !== orders and topic any_ne orders and not topic != orders",
    "not topic === orders and api === Produce and api all_eq Produce",
    "tcp.port != 1 and not tcp.port != 9092 and tcp.port !== 9092 and not tcp.port === 9092",
    "ip.addr != 10.0.0.2 and not ip.addr != 10.0.0.1",
    r'topic contains "\udcff"',
    "error == 6 and error == NOT_LEADER_OR_FOLLOWER and kafka.error != 0",
    "error == not_leader_or_follower",
    "error == ERROR_999 and error == 999 and error > 100",
    'error matches "^NOT_" and error contains LEADER',
    "errors",
    "not problem",
    # Addresses.
    "client == 10.0.0.1 and client == 10.0.0.1:50000 and client == 10.0.0.0/8",
    "ip.addr == 10.0.0.1 and ip.addr == fd00::1 and ip.src == 10.0.0.1 and ip.dst == fd00::/16",
    "broker == [fd00::1]:9092 and broker != [fd00::1]:9093 and broker == [fd00::1]",
    'broker contains "]:90" and client matches ":5....$"',
    "tcp.port == 9092 and tcp.port == 50000 and tcp.dstport == 9092 and tcp.srcport > 9092",
    "tcp.port in {9092..9093}",
    "kafka.len == 60",
    # Bodies.
    "request.acks == -1 and kafka.required_acks == -1 and kafka.throttle_time == 0",
    "request.topic_data.partition_data.index == 1",
    "request.topic_data.partition_data.index !== 1",
    "request.topic_data.partition_data.index != 2",
    "request.topic_data.name in {none, other}",
    "response.responses.partition_responses.error_code !== 0",
    "response.responses.partition_responses.error_code == NOT_LEADER_OR_FOLLOWER",
    'response.responses.partition_responses.error_code matches "LEADER"',
    "response.responses.topic_id == 3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "response.responses.topic_id == PyUE4E-JEdOaDAMF6CwzAQ",
    "response.responses.topic_id contains 4f89",
    "request.topic_data.partition_data.records contains blue",
    "request.topic_data.partition_data.records contains beef",
    "request.topic_data.partition_data.records == 00beef20626c7565",
    'request.topic_data.partition_data.records matches "b.ue$"',
    "request.topic_data and request.topic_data.partition_data",
    # Null and absent.
    "request.transactional_id == null and not request.transactional_id != null",
    "not request.transactional_id and request.acks != null",
    "request.topic_data.partition_data.records == null",
    "request.topic_data.partition_data.records !== null",
    "request.topic_data.partition_data.records in {null, zz}",
    "not (request.transactional_id == x or request.transactional_id != x)",
    "not request.group_id and not request.group_id == null and not request.group_id != null",
    # Combination.
    "not api == Fetch and api == Produce",
    "!(api == Fetch) && !!api == Produce",
    "api == Fetch and api == Fetch or api == Produce",
    "api == Produce or api == Fetch and api == Fetch",
    "NOT api == Fetch AND (api == Produce OR api == Fetch)",
]
FALSE = [
    "not kafka",
    "api == Fetch",
    "api_version > 9",
    "api_version in {1..8}",
    "client_id == RDKAFKA",
    "client_id contains RD",
    "not topic == orders",
    "topic == null",
    "problems",
    "problem == x",
    "error == NONE",
    "client == 10.0.0.1:50001",
    "client == 10.0.0.2",
    "ip.addr == 10.0.0.2",
    "ip.src == fd00::1",
    "tcp.srcport == 9092",
    "tcp.port != 9092",
    "request.topic_data.partition_data.index != 1",
    "response.responses.partition_responses.error_code != 0",
    "request.topic_data.partition_data.records != null",
    "request.topic_data.partition_data.index > 1",
    "request.transactional_id",
    "request.transactional_id == null and request.transactional_id != null",
    "response.responses.partition_responses.error_code in {1..5}",
    "(api == Produce or api == Fetch) and api == Fetch",
]


@pytest.mark.parametrize("text", TRUE)
def test_a_true_filter(text: str) -> None:
    assert parse(text).matches(produce())


@pytest.mark.parametrize("text", FALSE)
def test_a_false_filter(text: str) -> None:
    assert not parse(text).matches(produce())


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("error == 0", {"errors": []}, True),
        ("error != 0", {"errors": []}, False),
        ("error", {"errors": []}, False),
        ("api_version == null", {"api_version": None}, True),
        ("api_version != 3", {"api_version": None}, False),
        ("api_version < 3", {"api_version": None}, False),
        ("client_id", {"client_id": None}, False),
        ("latency_ms > 5", {"latency_ms": None}, False),
        ("tcp.port == 5", {"client": None}, False),
        ('api == "api 999"', {"api": "api 999"}, True),
        ("topic == a", {"topics": ("a", "b")}, True),
    ],
)
def test_null_and_empty_columns(text: str, columns: dict[str, object], expected: bool) -> None:
    assert parse(text).matches(produce(**columns)) is expected


def test_an_undecodable_body_has_no_fields() -> None:
    row = FakeRow(produce().columns)
    assert not parse("request.acks").matches(row)
    assert not parse("request.acks == null").matches(row)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("api == Produce", []),
        ("request.acks == 0 and api == Produce or not request.acks == 1", ["request.acks"]),
        ("kafka.throttle_time > 0", ["response.throttle_time_ms"]),
        (
            "response.topics.name == a or request.acks",
            ["response.topics.name", "request.acks"],
        ),
    ],
)
def test_body_fields_used_by_a_filter(text: str, paths: list[str]) -> None:
    found = parse(text)
    assert [str(path) for path in found.paths] == paths
    assert found.needs_bodies is bool(paths)


@pytest.mark.parametrize(
    "text",
    ["request.acks == 0 and api == Fetch", "(request.acks or request.topics) and api == Fetch"],
)
def test_bodies_are_decoded_only_if_columns_do_not_decide(text: str) -> None:
    row = produce()
    assert not parse(text).matches(row)
    assert row.bodies_asked == 0


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("api_version", [9]),
        ("errors", ["NOT_LEADER_OR_FOLLOWER", "ERROR_999"]),
        ("problems", []),
        ("tcp.port", [50000, 9092]),
        ("ip.addr", ["10.0.0.1:50000", "[fd00::1]:9092"]),
        ("request.topic_data.partition_data.index", [0, 1]),
        ("request.transactional_id", [None]),
        ("request.group_id", []),
    ],
)
def test_the_values_of_a_name(name: str, values: list[object]) -> None:
    assert values_of(produce(), resolve(name)) == values


def test_an_empty_error_list_has_no_values() -> None:
    assert values_of(produce(errors=[]), resolve("errors")) == []


def test_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match="did you mean topics"):
        resolve("topicss")
