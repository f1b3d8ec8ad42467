"""Every API is sent, or omitted for a reason."""

from __future__ import annotations

import pytest

from dissector.errors import UsageError
from dissector.protocol.apis import KEYS, NAMES
from dissector.protocol.messages import decode_request
from replay.order.exclusion_policy import (
    EXCLUDED_APIS,
    allowed_apis,
    provided_prerequisites,
    why_left_out,
    why_not_ready,
    why_partition_was_new,
)
from tests import default_frames
from tests.replay.support.builders import request, response


def test_the_table_has_each_api_once() -> None:
    names = [name for listed in EXCLUDED_APIS.values() for name in listed.split()]
    assert len(names) == len(set(names))
    assert set(names) <= set(NAMES.values())


def test_requests_of_clients_are_replayed_and_those_of_brokers_omitted() -> None:
    assert why_left_out(request("Produce", 9, {}), frozenset()) == ""
    assert why_left_out(request("Fetch", 11, {"replica_id": -1}), frozenset()) == ""
    assert "brokers" in why_left_out(request("Vote", 0, {}), frozenset())


def test_destructive_apis_need_allow() -> None:
    message = request("DeleteTopics", 1, {})
    assert "not allowed" in why_left_out(message, frozenset())
    assert why_left_out(message, allowed_apis(["deletetopics"])) == ""
    assert "telemetry" in why_left_out(request("PushTelemetry", 0, {}), frozenset())


def test_changes_provided_by_requests() -> None:
    create_acls = request("CreateAcls", 2, {})
    done, denied = {"error_code": 0, "error_message": None}, {"error_code": 31}
    assert provided_prerequisites(create_acls, None) == {"CreateAcls"}
    assert provided_prerequisites(
        create_acls, response("CreateAcls", 2, {"results": [denied, done]})
    )
    assert not provided_prerequisites(create_acls, response("CreateAcls", 2, {"results": [denied]}))
    assert not provided_prerequisites(request("CreateTopics", 4, {}), None)


def test_changed_settings_are_named() -> None:
    configs = [{"name": "retention.ms", "value": "1"}, {"name": "cleanup.policy", "value": "x"}]
    body = {"resources": [{"resource_type": 2, "resource_name": "t", "configs": configs}]}
    provided = provided_prerequisites(request("AlterConfigs", 1, body), None)
    assert provided == {"AlterConfigs of retention.ms", "AlterConfigs of cleanup.policy"}
    assert not provided_prerequisites(
        request("AlterConfigs", 1, body | {"validate_only": True}), None
    )


@pytest.mark.parametrize("name", ["Nothing", "Produce", "SaslHandshake", "Vote"])
def test_only_omitted_apis_can_be_allowed(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        allowed_apis([name])


def test_captured_authentication_is_omitted() -> None:
    assert "authentication" in why_left_out(request("SaslAuthenticate", 2, {}), frozenset())


def test_undecodable_requests_are_omitted() -> None:
    message = request("Heartbeat", 0, {})
    message.body = None
    message.problem("bytes are missing", "", 0)
    assert why_left_out(message, frozenset()) == "can not be decoded: bytes are missing"


def test_unknown_versions_are_omitted() -> None:
    frame = bytearray(default_frames.request(KEYS["ApiVersions"], 5, 1)[4:])
    frame[2:4] = (6).to_bytes(2, "big")
    why = why_left_out(decode_request(bytes(frame)), frozenset())
    assert why == "version 6 of ApiVersions is unknown, so it is not sent"
    why = why_left_out(decode_request(bytes(frame[:-8])), frozenset())
    assert why == "can not be decoded: version 6 of ApiVersions is not known (known: 0-5)"


def test_requests_with_retriable_errors_are_omitted() -> None:
    refused = response("InitProducerId", 4, {"error_code": 14})
    assert "COORDINATOR_LOAD_IN_PROGRESS" in why_not_ready("InitProducerId", refused)
    assert why_not_ready("InitProducerId", response("InitProducerId", 4, {})) == ""
    assert why_not_ready("InitProducerId", None) == ""
    assert why_not_ready("InitProducerId", response("InitProducerId", 4, {"error_code": 53})) == ""


def test_partly_refused_requests_are_replayed() -> None:
    parts = [{"index": 0, "error_code": 6}, {"index": 1, "error_code": 0, "base_offset": 4}]
    body = {"responses": [{"name": "orders", "partition_responses": parts}]}
    assert why_not_ready("Produce", response("Produce", 9, body)) == ""
    body["responses"][0]["partition_responses"] = parts[:1]
    assert why_not_ready("Produce", response("Produce", 9, body)) != ""


def test_a_new_partition_may_lack_replicas() -> None:
    refused = {"responses": [{"name": "t", "partition_responses": [{"error_code": 19}]}]}
    assert "NOT_ENOUGH_REPLICAS" in why_partition_was_new(
        "Produce", response("Produce", 7, refused)
    )


def test_unknown_topics_are_a_delay_only_in_produce_responses() -> None:
    refused = response(
        "Produce", 13, {"responses": [{"partition_responses": [{"error_code": 100}]}]}
    )
    assert "UNKNOWN_TOPIC_ID" in why_partition_was_new("Produce", refused)
    assert why_not_ready("Produce", refused) == ""
    assert why_partition_was_new("Produce", None) == ""
    assert (
        why_partition_was_new("Metadata", response("Metadata", 9, {"topics": [{"error_code": 3}]}))
        == ""
    )
