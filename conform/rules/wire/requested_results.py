"""C, second part: what an answer without an error has to hold, and what none may show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conform.evidence.fetch_history import replica_id_of
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.wire.error_code_rules import structs_at
from dissector.protocol.facts import NO_ID
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
"""API -> the lists that lead to structs with an error code, and what is there without an error."""


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
)
def check_has_result(observation: Observation, reporter: Reporter) -> None:
    """Look for results that are missing where no error says why."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    way, wanted = _RESULTS[observation.exchange.api or ""]
    for path, struct in structs_at(response, way):
        if struct.get("error_code") or _is_redirected(observation, struct):
            continue
        reporter.count_judged()
        for name, fits in wanted.items():
            if name in struct and not fits(struct[name]):
                shown = struct[name] if isinstance(struct[name], int) else "empty"
                found = f"{name} is {shown}, without an error"
                reporter.report_violation(Side.BROKER, found, path=f"{path}.{name}".lstrip("."))


def _is_redirected(observation: Observation, struct: Any) -> bool:
    """Tell whether a struct has its result in lists, or none by design."""
    api, request = observation.exchange.api, observation.request_body
    if api == "FindCoordinator":
        return "coordinators" in struct
    if api == "Fetch":  # a replica hears of no high watermark until the leader knows it
        return request is None or replica_id_of(request) >= 0
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
    """Look for values of sensitive settings."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    way = (
        ("results", "configs")
        if observation.exchange.api == "DescribeConfigs"
        else ("topics", "configs")
    )
    if way[0] not in response or not any("configs" in each for each in response[way[0]] or ()):
        return
    for path, config in structs_at(response, way):
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
    """Hold what is listed against what was asked for."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    reporter.count_judged()
    if observation.exchange.api == "DescribeConfigs":
        _judge_settings(reporter, request, response)
        return
    for name, wanted, listed, value in _FILTERS[observation.exchange.api or ""]:
        allowed = {_normalized(each) for each in request.get(wanted) or ()}
        for at, each in enumerate(response[listed] or ()):
            given = each.get(value)
            if allowed and given is not None and _normalized(given) not in allowed:
                found = f"{name} {quoted(str(given))} was not requested"
                reporter.report_violation(Side.BROKER, found, path=f"{listed}[{at}].{value}")


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
    wanted = {(r.resource_type, r.resource_name): r.configuration_keys for r in request.resources}
    for at, result in enumerate(response.results or ()):
        keys = wanted.get((result.resource_type, result.resource_name))
        for number, config in enumerate(result.configs or ()):
            path = f"results[{at}].configs[{number}]"
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
    """Hold what was made against what was asked for."""
    request, response = observation.request_body, observation.response_body
    if request is None or response is None:
        reporter.count_unjudged(observation.unreadable_reason())
        return
    if observation.exchange.api != "CreateTopics":
        _judge_times(reporter, response)
        return
    wanted = {each.name: each for each in request.topics or ()}
    for at, topic in enumerate(response.topics or ()):
        wish = wanted.get(topic.name)
        if wish is None or topic.error_code or topic.get("topic_config_error_code"):
            continue
        reporter.count_judged()
        for name in ("num_partitions", "replication_factor"):
            due, made = wish[name], topic.get(name, -1)
            if due > 0 and made not in (-1, due):
                found = f"{name} {due} is request, {made} is made"
                reporter.report_violation(Side.BROKER, found, path=f"topics[{at}].{name}")


def _judge_times(reporter: Reporter, response: Any) -> None:
    for token in response.get("tokens", [response]):
        if token.get("error_code"):
            continue
        issue, end = (
            token.get("issue_timestamp_ms", token.get("issue_timestamp")),
            token.get("expiry_timestamp_ms", token.get("expiry_timestamp")),
        )
        last = token.get("max_timestamp_ms", token.get("max_timestamp"))
        reporter.count_judged()
        if not issue <= end <= last:
            found = f"issued at {issue}, ends at {end}, at {last} at the latest"
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
    """Look up states and types."""
    response = observation.response_body
    if response is None:
        reporter.count_unjudged(observation.unreadable_reason(request=False))
        return
    reporter.count_judged()
    name, field, known = _STATES[observation.exchange.api or ""]
    for at, each in enumerate(response[name] or ()):
        if each.get(field) and each[field] not in known:
            found = f"the state is {quoted(each[field])}"
            reporter.report_violation(Side.BROKER, found, path=f"{name}[{at}].{field}")
        if each.get("group_type") and each.group_type.lower() not in _TYPES:
            found = f"the type is {quoted(each.group_type)}"
            reporter.report_violation(Side.BROKER, found, path=f"{name}[{at}].group_type")
