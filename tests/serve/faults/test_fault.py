"""Faults for requests that match a filter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dissector.errors import FilterError, UsageError
from dissector.protocol.apis import KEYS
from dissector.protocol.messages import decode_request
from serve.answers.client_request import ClientRequest
from serve.faults.fault import Fault, FaultKind, Faults
from serve.forms.canonical_body import TopicNames, canonical_body
from tests import default_frames as frames


def _request(api: str, version: int, **values: Any) -> ClientRequest:
    message = decode_request(frames.request(KEYS[api], version, 1, **values)[4:])
    return ClientRequest(message, canonical_body(message, TopicNames()))


def _produce(topic: str) -> ClientRequest:
    parts = [{"index": 0, "records": None}, {"index": 1, "records": None}]
    return _request("Produce", 9, topic_data=[{"name": topic, "partition_data": parts}])


def test_a_fault_is_injected_its_number_of_times() -> None:
    counts: Counter[str] = Counter()
    fault = Fault.of("api == Produce and topic == orders", "NOT_LEADER_OR_FOLLOWER,times:2")
    faults = Faults([fault], counts)
    taken = [faults.take(_produce("orders")) for _ in range(3)]
    assert taken == [fault, fault, None]
    assert faults.take(_produce("other")) is None
    assert counts.total() == 2


def test_a_fault_sets_the_error_of_each_partition() -> None:
    answer = Fault.of("api == Produce", "NOT_LEADER_OR_FOLLOWER").answer(_produce("orders"))
    (topic,) = answer.responses
    assert topic.name == "orders"
    assert [(each.index, each.error_code) for each in topic.partition_responses] == [(0, 6), (1, 6)]


@pytest.mark.parametrize(
    ("filter_text", "action", "kind"),
    [
        ("client_id == test", "close", FaultKind.CLOSE),
        ("request.acks == 0", "truncate", FaultKind.TRUNCATE),
        ("api_version > 8", "delay:250", FaultKind.DELAY),
    ],
)
def test_faults_are_parsed(filter_text: str, action: str, kind: FaultKind) -> None:
    fault = Fault.of(filter_text, action)
    assert fault.kind is kind
    assert Faults([fault], Counter()).take(_produce("orders")) is fault


@pytest.mark.parametrize(
    ("filter_text", "action"),
    [
        ("api == Fetch", ""),
        ("api == Fetch", "NO_SUCH"),
        ("api == Fetch", "close,3"),
        ("api == Fetch", "delay:a"),
        ("x", "close"),
    ],
)
def test_wrong_faults_are_refused(filter_text: str, action: str) -> None:
    with pytest.raises((UsageError, FilterError)):
        Fault.of(filter_text, action)
