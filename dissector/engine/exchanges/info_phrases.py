"""
What the requests and responses of some APIs say beyond their group, topics and partitions.

Each phrase reads a body of any version; a field that this version lacks ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from dissector.protocol.records.batch_totals import batch_totals

Phrase: TypeAlias = Callable[[Mapping[str, Any]], str]

_MOST = 3
_ACKS = {-1: "all"}
_LIST_OFFSETS = {-1: "latest", -2: "earliest", -3: "newest timestamp", -4: "local log"}
"""Source: KIP-79, KIP-734, KIP-405."""


def _some(values: Sequence[Any]) -> str:
    """Return the first values, each once."""
    found = list(dict.fromkeys(map(str, values)))
    return ", ".join(found[:_MOST]) + (", …" if len(found) > _MOST else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _partitions(topics: Any, name: str) -> Iterator[Mapping[str, Any]]:
    for topic in topics or ():
        yield from topic[name] or ()


def _records(fields: Sequence[bytes | None]) -> str:
    """Return the total of `records` fields, by the headers of their batches."""
    found = [batch_totals(each) for each in fields if each]
    if not found:
        return ""
    size = sum(len(each) for each in fields if each)
    codecs = _some([each.codec for each in found if each.codec != "none"])
    total = _count(sum(each.records for each in found), "record")
    more = "+" if any(each.is_cut for each in found) else ""
    return " ".join(filter(None, (f"{total}{more}", f"{size:,} B", codecs)))


def _produce(body: Mapping[str, Any]) -> str:
    partitions = _partitions(body["topic_data"], "partition_data")
    records = _records([each["records"] for each in partitions])
    return f"{records} acks={_ACKS.get(body['acks'], body['acks'])}".strip()


def _produced(body: Mapping[str, Any]) -> str:
    partitions = list(_partitions(body["responses"], "partition_responses"))
    offsets = [each["base_offset"] for each in partitions]
    return f"offset {_some(offsets)}" if offsets else ""


def _fetch(body: Mapping[str, Any]) -> str:
    offsets = [each["fetch_offset"] for each in _partitions(body["topics"], "partitions")]
    if offsets:
        return f"from {_some(offsets)}"
    return f"session {body['session_id']}, as before" if body.get("session_id") else ""


def _fetched(body: Mapping[str, Any]) -> str:
    partitions = list(_partitions(body["responses"], "partitions"))
    return _records([each["records"] for each in partitions]) or "nothing new"


def _join(body: Mapping[str, Any]) -> str:
    return f"member {body['member_id']}" if body["member_id"] else "new member"


def _joined(body: Mapping[str, Any]) -> str:
    leads = body["leader"] == body["member_id"]
    who = _count(len(body["members"]), "member") if leads else f"leader {body['leader']}"
    return f"generation {body['generation_id']}, {who}"


def _commit(body: Mapping[str, Any]) -> str:
    found = [each["committed_offset"] for each in _partitions(body["topics"], "partitions")]
    return f"at {_some(found)}" if found else ""


def _committed(body: Mapping[str, Any]) -> str:
    groups = body.get("groups")
    topics = body["topics"] if groups is None else [each for g in groups for each in g["topics"]]
    found = [each["committed_offset"] for each in _partitions(topics, "partitions")]
    known = [each for each in found if each >= 0]
    return f"offset {_some(known)}" if known else "no offset"


def _coordinator(body: Mapping[str, Any]) -> str:
    kind = ("group", "transaction", "share group")[body.get("key_type", 0)]
    return f"{kind} {_some(body.get('coordinator_keys') or [body['key']])}"


def _coordinated(body: Mapping[str, Any]) -> str:
    found = body.get("coordinators") or [body]
    return _some([f"broker {each['node_id']} {each['host']}:{each['port']}" for each in found])


def _metadata(body: Mapping[str, Any]) -> str:
    if body["topics"] is None:
        return "all topics"
    return "" if body["topics"] else "brokers"


def _described(body: Mapping[str, Any]) -> str:
    brokers = _count(len(body["brokers"]), "broker")
    return f"{brokers}, {_count(len(body['topics']), 'topic')}" if body["topics"] else brokers


def _versions(body: Mapping[str, Any]) -> str:
    return f"{body['client_software_name']} {body['client_software_version']}"


def _offered(body: Mapping[str, Any]) -> str:
    return _count(len(body["api_keys"]), "API")


def _generation(body: Mapping[str, Any]) -> str:
    return f"generation {body['generation_id']}"


def _epoch(body: Mapping[str, Any]) -> str:
    return f"epoch {body['member_epoch']}"


def _producer(body: Mapping[str, Any]) -> str:
    return f"producer id {body['producer_id']} epoch {body['producer_epoch']}"


def _end(body: Mapping[str, Any]) -> str:
    return "commit" if body["committed"] else "abort"


def _create(body: Mapping[str, Any]) -> str:
    counts = [each["num_partitions"] for each in body["topics"]]
    return f"{_some(counts)} partitions" if any(each >= 0 for each in counts) else ""


def _list(body: Mapping[str, Any]) -> str:
    found = [each["timestamp"] for each in _partitions(body["topics"], "partitions")]
    return _some([_LIST_OFFSETS.get(each, f"timestamp {each}") for each in found])


def _listed(body: Mapping[str, Any]) -> str:
    found = [each["offset"] for each in _partitions(body["topics"], "partitions")]
    return f"offset {_some(found)}" if found else ""


def _mechanism(body: Mapping[str, Any]) -> str:
    return str(body["mechanism"])


REQUESTS: dict[str, Phrase] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "Metadata": _metadata,
    "ApiVersions": _versions,
    "FindCoordinator": _coordinator,
    "JoinGroup": _join,
    "SyncGroup": _generation,
    "Heartbeat": _generation,
    "ConsumerGroupHeartbeat": _epoch,
    "ShareGroupHeartbeat": _epoch,
    "OffsetCommit": _commit,
    "ListOffsets": _list,
    "EndTxn": _end,
    "CreateTopics": _create,
    "SaslHandshake": _mechanism,
}
RESPONSES: dict[str, Phrase] = {
    "Produce": _produced,
    "Fetch": _fetched,
    "ShareFetch": _fetched,
    "Metadata": _described,
    "ApiVersions": _offered,
    "FindCoordinator": _coordinated,
    "JoinGroup": _joined,
    "ConsumerGroupHeartbeat": _epoch,
    "ShareGroupHeartbeat": _epoch,
    "OffsetFetch": _committed,
    "ListOffsets": _listed,
    "InitProducerId": _producer,
}
