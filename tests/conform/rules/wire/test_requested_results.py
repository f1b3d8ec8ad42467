"""Rules C, part 2: scenes that break and keep each rule."""

from __future__ import annotations

from typing import Any

from tests.conform.scene import Scene, breaks, keeps, scene_of

CREATE_TOPICS, INIT, DESCRIBE_CONFIGS, LIST_GROUPS, CREATE_TOKEN = 19, 22, 32, 16, 38


def _given(producer_id: int) -> Scene:
    asks = {"transactional_id": None, "transaction_timeout_ms": 9}
    return scene_of((INIT, 2, asks, {"producer_id": producer_id}))


@keeps("C05")
def an_id() -> Scene:
    return _given(7)


@breaks("C05")
def no_id() -> Scene:
    return _given(-1)


def _configs(*configs: dict[str, Any], keys: list[str] | None = None, **request: Any) -> Scene:
    who = {"resource_type": 2, "resource_name": "t"}
    asks = {"resources": [{**who, "configuration_keys": keys}], **request}
    return scene_of((DESCRIBE_CONFIGS, 3, asks, {"results": [{**who, "configs": list(configs)}]}))


@keeps("C06")
@keeps("C07")
def hidden() -> Scene:
    config = {"name": "ssl.key", "value": None, "is_sensitive": True}
    return _configs(config, keys=["ssl.key"])


@breaks("C06")
def shown() -> Scene:
    return _configs({"name": "ssl.key", "value": "sesame", "is_sensitive": True})


@breaks("C07")
def another_setting() -> Scene:
    return _configs({"name": "b", "value": "1"}, keys=["a"])


@breaks("C07")
def unasked_documentation() -> Scene:
    return _configs({"name": "a", "value": "1", "documentation": "what it is"})


def _groups(state: str, kind: str = "classic", *wanted: str) -> Scene:
    groups = [{"group_id": "g", "group_state": state, "group_type": kind}]
    asks = {"states_filter": list(wanted), "types_filter": []}
    return scene_of((LIST_GROUPS, 5, asks, {"groups": groups}))


@breaks("C07")
def another_state() -> Scene:
    return _groups("Empty", "classic", "Stable")


@keeps("C07")
@keeps("C09")
def the_state_in_small_letters() -> Scene:
    return _groups("Stable", "classic", "stable")


@breaks("C09")
def no_such_state() -> Scene:
    return _groups("Running")


@breaks("C09")
def no_such_type() -> Scene:
    return _groups("Stable", "strange")


def _created(made: int) -> Scene:
    asks = {"topics": [{"name": "t", "num_partitions": 3, "replication_factor": 1}]}
    topic = {"name": "t", "num_partitions": made, "replication_factor": 1}
    return scene_of((CREATE_TOPICS, 5, asks, {"topics": [topic]}))


@keeps("C08")
def three_of_three() -> Scene:
    return _created(3)


@breaks("C08")
def one_of_three() -> Scene:
    return _created(1)


@breaks("C08")
def expires_before_its_issue_time() -> Scene:
    times = {"issue_timestamp_ms": 9, "expiry_timestamp_ms": 5, "max_timestamp_ms": 20}
    return scene_of((CREATE_TOKEN, 1, {}, {"token_id": "t", "hmac": b"x", **times}))
