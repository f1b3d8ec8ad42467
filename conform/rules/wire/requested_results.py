"""C, second part: what an answer without an error has to hold, and what none may show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conform.evidence.fetch_history import replica_of
from conform.evidence.observation import Turn
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.rules.wire.error_code_rules import structs
from dissector.protocol.facts import NO_ID
from dissector.view.text.escape import quoted

_Fits = Callable[[Any], bool]


def _from_0(value: Any) -> bool:
    return bool(value >= 0)


def _above_0(value: Any) -> bool:
    return bool(value > 0)


def _filled(value: Any) -> bool:
    return bool(value)


def _has_id(value: Any) -> bool:
    return bool(value != NO_ID)


_RESULTS: Mapping[str, tuple[tuple[str, ...], Mapping[str, _Fits]]] = {
    "Produce": (("responses", "partition_responses"), {"base_offset": _from_0}),
    "Fetch": (("responses", "partitions"), {"high_watermark": _from_0}),
    "InitProducerId": ((), {"producer_id": _from_0, "producer_epoch": _from_0}),
    "FindCoordinator": ((), {"node_id": _from_0, "host": _filled, "port": _above_0}),
    "JoinGroup": (
        (),
        {"generation_id": _above_0, "member_id": _filled, "leader": _filled},
    ),
    "Metadata": (("topics",), {"topic_id": _has_id}),
    "DescribeTopicPartitions": (("topics",), {"topic_id": _has_id}),
    "DescribeCluster": ((), {"cluster_id": _filled, "brokers": _filled}),
    "CreateDelegationToken": ((), {"token_id": _filled, "hmac": _filled}),
    "DescribeGroups": (("groups",), {"group_state": _filled}),
    "ConsumerGroupDescribe": (("groups",), {"group_state": _filled}),
    "ShareGroupDescribe": (("groups",), {"group_state": _filled}),
    "StreamsGroupDescribe": (("groups",), {"group_state": _filled}),
    "ConsumerGroupHeartbeat": ((), {"member_id": _filled}),
    "ShareGroupHeartbeat": ((), {"member_id": _filled}),
    "StreamsGroupHeartbeat": ((), {"member_id": _filled}),
    "SaslHandshake": ((), {"mechanisms": _filled}),
    "GetTelemetrySubscriptions": (
        (),
        {
            "client_instance_id": _has_id,
            "push_interval_ms": _above_0,
            "telemetry_max_bytes": _above_0,
            "accepted_compression_types": _filled,
        },
    ),
    "AllocateProducerIds": ((), {"producer_id_len": _above_0}),
    "DeleteRecords": (("topics", "partitions"), {"low_watermark": _from_0}),
    "DescribeTransactions": (("transaction_states",), {"transaction_state": _filled}),
}
"""API -> the lists that lead to structs with an error code, and what is there without an error."""


@rule(
    "C05",
    "A success must have its result",
    Severity.ERROR,
    source="the response classes of org.apache.kafka.common.requests: -1, an empty text and the "
    "zero id stand for nothing, beside an error alone",
    asks="Where an answer has no error, it has what was asked for: an offset, a producer id, a "
    "coordinator, a generation, a topic id, a state.",
    example="InitProducerId: error_code 0, producer_id -1",
    apis=tuple(_RESULTS),
)
def has_a_result(turn: Turn, say: Say) -> None:
    """Look for results that are missing where no error says why."""
    told = turn.told
    if told is None:
        say.unjudged(turn.lacks(request=False))
        return
    way, wanted = _RESULTS[turn.exchange.api or ""]
    for path, struct in structs(told, way):
        if struct.get("error_code") or _is_elsewhere(turn, struct):
            continue
        say.judged()
        for name, fits in wanted.items():
            if name in struct and not fits(struct[name]):
                shown = struct[name] if isinstance(struct[name], int) else "empty"
                found = f"{name} is {shown}, without an error"
                say.broken(Side.BROKER, found, path=f"{path}.{name}".lstrip("."))


def _is_elsewhere(turn: Turn, struct: Any) -> bool:
    """Tell whether a struct has its result in lists, or none by design."""
    api, asked = turn.exchange.api, turn.asked
    if api == "FindCoordinator":
        return "coordinators" in struct
    if api == "Fetch":  # a replica hears of no high watermark until the leader knows it
        return asked is None or replica_of(asked) >= 0
    return asked is None or asked.get("member_epoch", 0) < 0


@rule(
    "C06",
    "A sensitive setting must not show its value",
    Severity.ERROR,
    source="ConfigHelper.scala (createTopicConfigEntry, createBrokerConfigEntry): the value of a "
    "sensitive configuration is null",
    asks="Where a configuration entry is sensitive, its value is null, and so are its synonyms'.",
    example="ssl.keystore.password with is_sensitive and a value",
    apis=("DescribeConfigs", "CreateTopics"),
)
def sensitive_is_null(turn: Turn, say: Say) -> None:
    """Look for values of sensitive settings."""
    told = turn.told
    if told is None:
        say.unjudged(turn.lacks(request=False))
        return
    way = (
        ("results", "configs") if turn.exchange.api == "DescribeConfigs" else ("topics", "configs")
    )
    if way[0] not in told or not any("configs" in each for each in told[way[0]] or ()):
        return
    for path, config in structs(told, way):
        say.judged()
        values = [config["value"], *(each.value for each in config.get("synonyms") or ())]
        if config["is_sensitive"] and any(values):
            found = f"{quoted(config['name'])} is sensitive, and has a value"
            say.broken(Side.BROKER, found, path=path)


@rule(
    "C07",
    "An answer must keep to the filter of its request",
    Severity.ERROR,
    source="KIP-518 and KIP-848 (ListGroups), KIP-664 (ListTransactions), KIP-1142 "
    "(ListConfigResources), DescribeConfigsRequest.json (configuration_keys, include_synonyms)",
    asks="What an answer lists is of the states, types, producers, resources and settings that the "
    "request names, where it names any.",
    example="ListGroups of state Stable answers a group of state Empty",
    apis=("ListGroups", "ListTransactions", "ListConfigResources", "DescribeConfigs"),
)
def passes_the_filter(turn: Turn, say: Say) -> None:
    """Hold what is listed against what was asked for."""
    asked, told = turn.asked, turn.told
    if asked is None or told is None:
        say.unjudged(turn.lacks())
        return
    say.judged()
    if turn.exchange.api == "DescribeConfigs":
        _judge_settings(say, asked, told)
        return
    for name, wanted, listed, value in _FILTERS[turn.exchange.api or ""]:
        allowed = {_folded(each) for each in asked.get(wanted) or ()}
        for at, each in enumerate(told[listed] or ()):
            given = each.get(value)
            if allowed and given is not None and _folded(given) not in allowed:
                found = f"{name} {quoted(str(given))} was not asked for"
                say.broken(Side.BROKER, found, path=f"{listed}[{at}].{value}")


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


def _folded(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _judge_settings(say: Say, asked: Any, told: Any) -> None:
    wanted = {(r.resource_type, r.resource_name): r.configuration_keys for r in asked.resources}
    for at, result in enumerate(told.results or ()):
        keys = wanted.get((result.resource_type, result.resource_name))
        for number, config in enumerate(result.configs or ()):
            path = f"results[{at}].configs[{number}]"
            if keys and config.name not in keys:
                say.broken(Side.BROKER, f"{quoted(config.name)} was not asked for", path=path)
            elif config.get("synonyms") and not asked.get("include_synonyms"):
                found = "synonyms, which were not asked for"
                say.broken(Side.BROKER, found, path=f"{path}.synonyms")
            elif config.get("documentation") and not asked.get("include_documentation"):
                found = "documentation, which was not asked for"
                say.broken(Side.BROKER, found, path=f"{path}.documentation")


@rule(
    "C08",
    "What was created must be as asked",
    Severity.ERROR,
    source="CreateTopicsResponse.json v5+ (KIP-525); ReplicationControlManager.createTopics; "
    "DelegationTokenManager.java: 'max lifetime'",
    asks="A topic has as many partitions and replicas as CreateTopics asked for, where it did; a "
    "delegation token is issued before it ends, and ends before its last day.",
    example="num_partitions 3 is asked, 1 is answered",
    apis=("CreateTopics", "CreateDelegationToken", "DescribeDelegationToken"),
)
def created_as_asked(turn: Turn, say: Say) -> None:
    """Hold what was made against what was asked for."""
    asked, told = turn.asked, turn.told
    if asked is None or told is None:
        say.unjudged(turn.lacks())
        return
    if turn.exchange.api != "CreateTopics":
        _judge_times(say, told)
        return
    wanted = {each.name: each for each in asked.topics or ()}
    for at, topic in enumerate(told.topics or ()):
        wish = wanted.get(topic.name)
        if wish is None or topic.error_code or topic.get("topic_config_error_code"):
            continue
        say.judged()
        for name in ("num_partitions", "replication_factor"):
            due, made = wish[name], topic.get(name, -1)
            if due > 0 and made not in (-1, due):
                found = f"{name} {due} is asked, {made} is made"
                say.broken(Side.BROKER, found, path=f"topics[{at}].{name}")


def _judge_times(say: Say, told: Any) -> None:
    for token in told.get("tokens", [told]):
        if token.get("error_code"):
            continue
        issue, end = (
            token.get("issue_timestamp_ms", token.get("issue_timestamp")),
            token.get("expiry_timestamp_ms", token.get("expiry_timestamp")),
        )
        last = token.get("max_timestamp_ms", token.get("max_timestamp"))
        say.judged()
        if not issue <= end <= last:
            found = f"issued at {issue}, ends at {end}, at {last} at the latest"
            say.broken(Side.BROKER, found)


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
    "A state must be one that Kafka knows",
    Severity.WARNING,
    source="GroupState.java, GroupType.java, TransactionState.java: parse takes any other for "
    "UNKNOWN",
    asks="States of groups and transactions, and types of groups, are those of Kafka.",
    example="ListGroups: group_state 'Running'",
    apis=tuple(_STATES),
)
def states_are_known(turn: Turn, say: Say) -> None:
    """Look up states and types."""
    told = turn.told
    if told is None:
        say.unjudged(turn.lacks(request=False))
        return
    say.judged()
    name, field, known = _STATES[turn.exchange.api or ""]
    for at, each in enumerate(told[name] or ()):
        if each.get(field) and each[field] not in known:
            found = f"the state is {quoted(each[field])}"
            say.broken(Side.BROKER, found, path=f"{name}[{at}].{field}")
        if each.get("group_type") and each.group_type.lower() not in _TYPES:
            found = f"the type is {quoted(each.group_type)}"
            say.broken(Side.BROKER, found, path=f"{name}[{at}].group_type")
