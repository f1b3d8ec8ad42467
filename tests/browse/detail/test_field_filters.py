from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from browse.detail.exchange_nodes import exchange_nodes
from browse.detail.field_filters import column_of, filter_of
from dissector.filter import parse
from dissector.public import Exchange
from dissector.view.text.tree_node import TreeNode
from tests.browse.detail.pane_host import exchanges

SAMPLES = [
    ("kafka4-librdkafka-codecs.pcap", "api == Produce and frame.number < 60"),
    ("kafka4-java-share-group.pcap", "api in {ShareFetch ShareGroupHeartbeat Metadata}"),
    ("kafka4-errors.pcap", "error"),
    ("kafka4-librdkafka-sasl.pcap", "frame.number < 40"),
    ("kafka39-kafka-python-as-0.9.pcap", "api in {JoinGroup SyncGroup Fetch OffsetCommit}"),
    ("kafka4-java-admin.pcap", "api in {DescribeConfigs CreateTopics AlterConfigs CreateAcls}"),
]
MOST = 400
"""Fields of a sample that are tried."""


def nodes_of(exchange: Exchange) -> Iterator[TreeNode]:
    queue = exchange_nodes(exchange, show_secrets=False)
    while queue:
        node = queue.pop()
        yield node
        if node.load is not None:
            queue += node.load()


@pytest.mark.parametrize(("capture", "chosen"), SAMPLES)
def test_the_filter_of_each_field_matches_its_exchange(capture: str, chosen: str) -> None:
    tried = set()
    for exchange in exchanges(capture, chosen):
        for node in nodes_of(exchange):
            key = (exchange.api, node.path, type(node.value))
            if not node.path or key in tried or len(tried) >= MOST:
                continue
            tried.add(key)
            text = filter_of(node, exchange)
            assert text is not None, node.line
            assert parse(text).matches(exchange), f"{text}: {node.line}"
            assert column_of(node) is not None, node.line
    assert len(tried) > 20


class OneValue:
    """A row with the same value in every column and field."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def column(self, name: str) -> Any:
        return self.value

    def body(self, kind: str) -> Any:
        return {"topics": [{"topic_id": self.value}], "acks": self.value, "auth_bytes": self.value,
                "allow_auto_topic_creation": self.value}  # fmt: skip


class ErrorCode(OneValue):
    def body(self, kind: str) -> Any:
        return {"error_code": self.value}


PATHS = {
    UUID: "request.topics.topic_id",
    bool: "request.allow_auto_topic_creation",
    bytes: "request.auth_bytes",
    float: "latency_ms",
    int: "request.acks",
}


@pytest.mark.parametrize(
    ("value", "test"),
    [
        (None, " == null"),
        (True, " == true"),
        (-1, " == -1"),
        (0.5, " == 0.5"),
        (float("nan"), ""),
        ("", ' == ""'),
        ('a "b" \\ c', r' == "a \"b\" \\ c"'),
        ("it's\t\x9b\ud800", ' == "it\'s\\u0009\\u009b\\ud800"'),
        ("\x1b[31m\u202e", r' == "\u001b[31m\u202e"'),
        ("x" * 201, f' contains "{"x" * 200}"'),
        (b"", ' == ""'),
        (b"\x00\xff", " == 0x00ff"),
        (b"\x01" * 201, f" contains 0x{'01' * 200}"),
        (UUID(int=7), " == 00000000-0000-0000-0000-000000000007"),
        (["a", "b"], ""),
    ],
)
def test_the_filter_of_a_value_matches_it(value: object, test: str) -> None:
    path = PATHS.get(type(value), "client_id")
    text = filter_of(TreeNode("field", path=path, value=value), OneValue(value))
    assert text == f"{path}{test}"
    assert text.isprintable()


@pytest.mark.parametrize(
    ("code", "name"), [(0, "NONE"), (-1, "UNKNOWN_SERVER_ERROR"), (9999, "ERROR_9999")]
)
def test_errors_have_names_in_filters(code: int, name: str) -> None:
    field = TreeNode("error_code", path="response.error_code", value=code)
    assert filter_of(field, ErrorCode(code)) == f"response.error_code == {name}"


def test_the_filter_of_an_empty_array_matches_it() -> None:
    assert filter_of(TreeNode("field", path="errors", value=[]), OneValue([])) == "not errors"


def test_secrets_are_not_in_filters() -> None:
    (login,) = exchanges("kafka4-librdkafka-sasl.pcap", "api == SaslAuthenticate")[:1]
    fields = {node.path: node for node in nodes_of(login)}
    secret = fields["request.auth_bytes"]
    assert secret.is_masked
    assert filter_of(secret, login) == "request.auth_bytes"


def test_values_without_a_filter() -> None:
    assert filter_of(TreeNode("heading"), OneValue(1)) is None
    assert column_of(TreeNode("heading")) is None
    assert filter_of(TreeNode("field", path="request.no_such_field", value=1), OneValue(1)) is None
