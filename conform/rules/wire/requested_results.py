"""C, second part: missing results of a response, and forbidden values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, none_judged
from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions, ScreenedRows
from conform.registry.single_values import NO_REPLICA
from conform.rules.wire.error_code_rules import structs_at
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.view.text.escape import quoted

_Predicate = Callable[[Any], bool]


def _is_not_negative(value: Any) -> bool:
    return bool(value >= 0)


def _is_positive(value: Any) -> bool:
    return bool(value > 0)


def _is_not_empty(value: Any) -> bool:
    return bool(value)


def _is_topic_id(value: Any) -> bool:
    return bool(value != NO_ID)


_RESULTS: Mapping[str, tuple[tuple[str, ...], Mapping[str, _Predicate]]] = {
    "Produce": (("responses", "partition_responses"), {"base_offset": _is_not_negative}),
    "Fetch": (("responses", "partitions"), {"high_watermark": _is_not_negative}),
    "InitProducerId": ((), {"producer_id": _is_not_negative, "producer_epoch": _is_not_negative}),
    "FindCoordinator": (
        (),
        {"node_id": _is_not_negative, "host": _is_not_empty, "port": _is_positive},
    ),
    "JoinGroup": (
        (),
        {"generation_id": _is_positive, "member_id": _is_not_empty, "leader": _is_not_empty},
    ),
    "Metadata": (("topics",), {"topic_id": _is_topic_id}),
    "DescribeTopicPartitions": (("topics",), {"topic_id": _is_topic_id}),
    "DescribeCluster": ((), {"cluster_id": _is_not_empty, "brokers": _is_not_empty}),
    "CreateDelegationToken": ((), {"token_id": _is_not_empty, "hmac": _is_not_empty}),
    "DescribeGroups": (("groups",), {"group_state": _is_not_empty}),
    "ConsumerGroupDescribe": (("groups",), {"group_state": _is_not_empty}),
    "ShareGroupDescribe": (("groups",), {"group_state": _is_not_empty}),
    "StreamsGroupDescribe": (("groups",), {"group_state": _is_not_empty}),
    "ConsumerGroupHeartbeat": ((), {"member_id": _is_not_empty}),
    "ShareGroupHeartbeat": ((), {"member_id": _is_not_empty}),
    "StreamsGroupHeartbeat": ((), {"member_id": _is_not_empty}),
    "SaslHandshake": ((), {"mechanisms": _is_not_empty}),
    "GetTelemetrySubscriptions": (
        (),
        {
            "client_instance_id": _is_topic_id,
            "push_interval_ms": _is_positive,
            "telemetry_max_bytes": _is_positive,
            "accepted_compression_types": _is_not_empty,
        },
    ),
    "AllocateProducerIds": ((), {"producer_id_len": _is_positive}),
    "DeleteRecords": (("topics", "partitions"), {"low_watermark": _is_not_negative}),
    "DescribeTransactions": (("transaction_states",), {"transaction_state": _is_not_empty}),
}
"""API -> names of the lists that lead to structs with an error code, and checks of the results."""


def _answers_partitions(rows: ScreenedRows) -> Bools:
    """Let Produce and Fetch pass that have both messages."""
    return (rows.is_of(PRODUCE) | rows.is_of(FETCH)) & rows.has_response


def _has_results(partitions: ScreenedPartitions) -> Bools:
    """Let the same pass if each partition without an error has an offset, and all replicas."""
    response = partitions.response
    has_results = response.all_of(len(partitions), (response.error != 0) | (response.offset >= 0))
    return partitions.sessions.is_replica | has_results


def _successes(partitions: ScreenedPartitions) -> Ints:
    """Count the partitions without an error, those of replicas apart."""
    response = partitions.response
    counts = response.count(len(partitions), response.error == 0)
    return np.where(partitions.sessions.is_replica, 0, counts)


@rule(
    "C05",
    "Success without a result",
    Severity.ERROR,
    source="the response classes of org.apache.kafka.common.requests: -1, an empty string and the "
    "zero id mean no result, which only occurs next to an error",
    asks="A response without an error contains the requested result: an offset, a producer id, a "
    "coordinator, a generation, a topic id, a state.",
    example="InitProducerId: error_code 0, producer_id -1",
    apis=tuple(_RESULTS),
    screen=Screen(
        none_judged,
        rows=_answers_partitions,
        partitions=_has_results,
        count=_successes,
    ),
)
def check_has_result(observation: Observation, reporter: Reporter) -> None:
    """Report results that are missing without an error."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    list_names, predicates = _RESULTS[observation.exchange.api or ""]
    for path, struct in structs_at(response, list_names):
        if struct.get("error_code") or _may_lack_result(observation, struct):
            continue
        reporter.count_judged()
        for name, is_result in predicates.items():
            if name in struct and not is_result(struct[name]):
                shown = struct[name] if isinstance(struct[name], int) else "empty"
                found = f"{name} is {shown}, but there is no error"
                reporter.report_violation(Side.BROKER, found, path=f"{path}.{name}".lstrip("."))


def _may_lack_result(observation: Observation, struct: Any) -> bool:
    """Return whether the result of a struct is in other lists, or absent by design."""
    api, request = observation.exchange.api, observation.request_body
    if api == "FindCoordinator":
        return "coordinators" in struct
    if api == "Fetch":  # replicas get no high watermark until the leader knows it
        return request is None or observation.replica_id > NO_REPLICA
    return request is None or request.get("member_epoch", 0) < 0


@rule(
    "C06",
    "Value of a sensitive setting in a response",
    Severity.ERROR,
    source="ConfigHelper.scala (createTopicConfigEntry, createBrokerConfigEntry): the value of a "
    "sensitive configuration is null",
    asks="The value of a sensitive configuration entry is null, and so are the values of its "
    "synonyms.",
    example="ssl.keystore.password with is_sensitive true and a value",
    apis=("DescribeConfigs", "CreateTopics"),
)
def check_sensitive_is_null(observation: Observation, reporter: Reporter) -> None:
    """Report values of sensitive settings."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    list_name = "results" if observation.exchange.api == "DescribeConfigs" else "topics"
    if not any("configs" in each for each in response.get(list_name) or ()):
        return
    for path, config in structs_at(response, (list_name, "configs")):
        reporter.count_judged()
        values = [config["value"], *(each.value for each in config.get("synonyms") or ())]
        if config["is_sensitive"] and any(values):
            found = f"{quoted(config['name'])} is sensitive, but has a value"
            reporter.report_violation(Side.BROKER, found, path=path)


@rule(
    "C07",
    "Response items that the request's filter excludes",
    Severity.ERROR,
    source="KIP-518 and KIP-848 (ListGroups), KIP-664 (ListTransactions), KIP-1142 "
    "(ListConfigResources), DescribeConfigsRequest.json (configuration_keys, include_synonyms)",
    asks="If the request lists states, types, producers, resources or settings, the response "
    "contains only items that match.",
    example="ListGroups with state Stable, and a response with a group in state Empty",
    apis=("ListGroups", "ListTransactions", "ListConfigResources", "DescribeConfigs"),
)
def check_filter(observation: Observation, reporter: Reporter) -> None:
    """Compare the items of a response with the filters of its request."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    reporter.count_judged()
    if observation.exchange.api == "DescribeConfigs":
        _judge_settings(reporter, request, response)
        return
    for name, filter_field, list_name, field in _FILTERS[observation.exchange.api or ""]:
        allowed = {_normalized(each) for each in request.get(filter_field) or ()}
        for index, item in enumerate(response[list_name] or ()):
            value = item.get(field)
            if allowed and value is not None and _normalized(value) not in allowed:
                found = f"{name} {quoted(str(value))} was not requested"
                reporter.report_violation(Side.BROKER, found, path=f"{list_name}[{index}].{field}")


_FILTERS = {
    "ListGroups": (
        ("state", "states_filter", "groups", "group_state"),
        ("type", "types_filter", "groups", "group_type"),
    ),
    "ListTransactions": (
        ("state", "state_filters", "transaction_states", "transaction_state"),
        ("producer", "producer_id_filters", "transaction_states", "producer_id"),
    ),
    "ListConfigResources": (("type", "resource_types", "config_resources", "resource_type"),),
}


def _normalized(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _judge_settings(reporter: Reporter, request: Any, response: Any) -> None:
    requested = {
        (each.resource_type, each.resource_name): each.configuration_keys
        for each in request.resources
    }
    for index, result in enumerate(response.results or ()):
        keys = requested.get((result.resource_type, result.resource_name))
        for config_index, config in enumerate(result.configs or ()):
            path = f"results[{index}].configs[{config_index}]"
            if keys and config.name not in keys:
                reporter.report_violation(
                    Side.BROKER, f"{quoted(config.name)} was not requested", path=path
                )
            elif config.get("synonyms") and not request.get("include_synonyms"):
                found = "synonyms, which were not requested"
                reporter.report_violation(Side.BROKER, found, path=f"{path}.synonyms")
            elif config.get("documentation") and not request.get("include_documentation"):
                found = "documentation, which was not requested"
                reporter.report_violation(Side.BROKER, found, path=f"{path}.documentation")


@rule(
    "C08",
    "Created topic or token that differs from the request",
    Severity.ERROR,
    source="CreateTopicsResponse.json v5+ (KIP-525); ReplicationControlManager.createTopics; "
    "DelegationTokenManager.java: 'max lifetime'",
    asks="A topic has the number of partitions and the replication factor that CreateTopics "
    "requested, if it requested any; a delegation token is issued before it expires, and expires "
    "before its maximum time.",
    example="num_partitions 3 in the request, 1 in the response",
    apis=("CreateTopics", "CreateDelegationToken", "DescribeDelegationToken"),
)
def check_created_as_requested(observation: Observation, reporter: Reporter) -> None:
    """Compare created topics with their request, and check the times of tokens."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if observation.exchange.api != "CreateTopics":
        _judge_times(reporter, response)
        return
    requested = {each.name: each for each in request.topics or ()}
    for index, topic in enumerate(response.topics or ()):
        requested_topic = requested.get(topic.name)
        if requested_topic is None or topic.error_code or topic.get("topic_config_error_code"):
            continue
        reporter.count_judged()
        for name in ("num_partitions", "replication_factor"):
            expected, actual = requested_topic[name], topic.get(name, -1)
            if expected > 0 and actual not in (-1, expected):
                found = f"{name} is {actual} instead of {expected}"
                reporter.report_violation(Side.BROKER, found, path=f"topics[{index}].{name}")


def _judge_times(reporter: Reporter, response: Any) -> None:
    for token in response.get("tokens", [response]):
        if token.get("error_code"):
            continue
        issue_ms = token.get("issue_timestamp_ms", token.get("issue_timestamp"))
        expiry_ms = token.get("expiry_timestamp_ms", token.get("expiry_timestamp"))
        max_ms = token.get("max_timestamp_ms", token.get("max_timestamp"))
        reporter.count_judged()
        if not issue_ms <= expiry_ms <= max_ms:
            found = f"issued at {issue_ms}, expires at {expiry_ms}, must expire by {max_ms}"
            reporter.report_violation(Side.BROKER, found)


_GROUP_STATES = frozenset(
    [
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
        "Empty",
        "Assigning",
        "Reconciling",
        "NotReady",
        "Unknown",
    ]
)
_STATES: Mapping[str, tuple[str, str, frozenset[str]]] = {
    "ListGroups": ("groups", "group_state", _GROUP_STATES),
    "DescribeGroups": ("groups", "group_state", _GROUP_STATES),
    "ConsumerGroupDescribe": ("groups", "group_state", _GROUP_STATES),
    "ShareGroupDescribe": ("groups", "group_state", _GROUP_STATES),
    "StreamsGroupDescribe": ("groups", "group_state", _GROUP_STATES),
    "ListTransactions": (
        "transaction_states",
        "transaction_state",
        frozenset(
            [
                "Empty",
                "Ongoing",
                "PrepareCommit",
                "PrepareAbort",
                "CompleteCommit",
                "CompleteAbort",
                "Dead",
                "PrepareEpochFence",
                "Unknown",
            ]
        ),
    ),
}
_TYPES = frozenset(("classic", "consumer", "share", "streams", "unknown"))


@rule(
    "C09",
    "Unknown state or type",
    Severity.WARNING,
    source="GroupState.java, GroupType.java, TransactionState.java: parse maps any other name to "
    "UNKNOWN",
    asks="States of groups and transactions, and types of groups, are those that Kafka defines.",
    example="ListGroups: group_state 'Running'",
    apis=tuple(_STATES),
)
def check_states(observation: Observation, reporter: Reporter) -> None:
    """Report unknown states and types."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    reporter.count_judged()
    list_name, field, states = _STATES[observation.exchange.api or ""]
    for index, each in enumerate(response[list_name] or ()):
        if each.get(field) and each[field] not in states:
            found = f"the state is {quoted(each[field])}"
            reporter.report_violation(Side.BROKER, found, path=f"{list_name}[{index}].{field}")
        if each.get("group_type") and each.group_type.lower() not in _TYPES:
            found = f"the type is {quoted(each.group_type)}"
            reporter.report_violation(Side.BROKER, found, path=f"{list_name}[{index}].group_type")
