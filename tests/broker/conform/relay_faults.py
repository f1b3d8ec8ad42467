"""For each rule about running brokers, a fault of a broker that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from tests.broker.conform.relay import HANG_UP, Fault, rewritten


def _hides_errors(api: str, *names: str) -> Fault:
    """Remove errors from responses."""
    codes = {error_code(name) for name in names}

    def remove_errors(body: Any) -> None:
        if isinstance(body, list):
            for each in body:
                remove_errors(each)
        elif isinstance(body, Container):
            for name, value in body.items():
                if name.endswith("error_code") and (value in codes or (value and not names)):
                    body[name] = 0
                remove_errors(value)

    def on_answer(request: Message, response: Message) -> None:
        if request.api == api:
            remove_errors(response.body)

    return Fault(on_answer=on_answer)


def _changes_responses(api: str, change: Callable[[Container, Container], None]) -> Fault:
    """Change the bodies of responses; `change` gets request and response."""

    def on_answer(request: Message, response: Message) -> None:
        if request.api == api and request.body is not None and response.body is not None:
            change(request.body, response.body)

    return Fault(on_answer=on_answer)


def _changes_requests(api: str, **values: Any) -> Fault:
    """Change fields of requests before they reach the broker."""

    def on_request(request: Message) -> None:
        if request.api == api and request.body is not None:
            request.body.update(values)

    return Fault(on_request=on_request)


def _changes_correlation_ids(api: str) -> Fault:
    """Respond with another correlation id."""

    def on_answer(request: Message, response: Message) -> bytes | None:
        if request.api != api:
            return None
        frame = rewritten(response)
        return bytes((frame[0] ^ 1,)) + frame[1:]

    return Fault(on_answer=on_answer)


def _accepts_unknown_versions(request: Message, response: Message) -> bytes | None:
    is_refused = response.frame[4:6] == b"\0\x23"
    return response.frame[:4] + b"\0\0" + response.frame[6:] if is_refused else None


def _adds_bytes(request: Message, response: Message) -> bytes | None:
    return rewritten(response) + b"\0" if request.api == "ListGroups" else None


def _offers_less_in_v0(request: Message, response: Message) -> None:
    if request.api == "ApiVersions" and request.api_version == 0 and response.body is not None:
        response.body.api_keys.pop()


def _ignores_tags(request: Message, response: Message) -> str | None:
    return HANG_UP if request.body is not None and UNKNOWN_TAGS in str(request.body) else None


def _adds_a_topic(request: Container, response: Container) -> None:
    if not request.topics and request.topics is not None:
        topic = Container(error_code=0, name="more", topic_id=UUID(int=1), is_internal=False)
        response.topics.append(Container(topic, partitions=[], topic_authorized_operations=0))


def _lists_a_broker_twice(_: Container, response: Container) -> None:
    response.brokers.append(response.brokers[0])


def _moves(step: int) -> Callable[[Container, Container], None]:
    offsets = iter(range(100, 10_000, step))

    def move(_: Container, response: Container) -> None:
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.base_offset = next(offsets)

    return move


def _brings(change: Callable[[bytes], bytes]) -> Callable[[Container, Container], None]:
    def bring(_: Container, response: Container) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.records = change(partition.records or b"")

    return bring


def _delays(_: Container, response: Container) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition["offset"] = partition.get("offset", 0) + 3


def _assigns_nothing(_: Container, response: Container) -> None:
    response.assignment = b""


def _drops_metadata(_: Container, response: Container) -> None:
    for group in response.get("groups") or [response]:
        for topic in group.topics:
            for partition in topic.partitions:
                partition.metadata = ""


def _lists_nothing(_: Container, response: Container) -> None:
    for result in response.results:
        result.configs = []


_PRODUCED = b"\0\0\0\0" + b"\0\0\0\0"
"""The answer of a Produce request to no topics."""

FAULTS = {
    "B21": _hides_errors("Produce", "INVALID_RECORD"),
    "E08": Fault(on_answer=_ignores_tags),
    "F12": Fault(holds_on=True),
    "P01": Fault(on_answer=_adds_bytes),
    "P02": Fault(on_answer=_accepts_unknown_versions),
    "P03": Fault(on_answer=_offers_less_in_v0),
    "P04": _hides_errors("ApiVersions", "INVALID_REQUEST"),
    "P05": Fault(holds_on=True),
    "P06": Fault(holds_on=True),
    "P07": _changes_correlation_ids("Metadata"),
    "P08": _changes_correlation_ids("ApiVersions"),
    "P09": _changes_correlation_ids("ApiVersions"),
    "P10": _hides_errors("ListOffsets"),
    "P11": _hides_errors("Fetch"),
    "P12": _hides_errors("Heartbeat"),
    "P13": _hides_errors("EndTxn"),
    "P14": _changes_responses("Metadata", _adds_a_topic),
    "P15": _changes_responses("DescribeCluster", _lists_a_broker_twice),
    "P17": _hides_errors("SaslHandshake"),
    "P18": Fault(answers_all=_PRODUCED),
    "P19": Fault(holds_on=True),
    "P20": _hides_errors("Produce"),
    "P21": _changes_responses("Produce", _moves(1)),
    "P22": _hides_errors("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    "P23": _hides_errors("Produce", "UNSUPPORTED_COMPRESSION_TYPE"),
    "P24": _hides_errors("Produce"),
    "P25": _hides_errors("Produce"),
    "P26": _changes_responses("Produce", _moves(5)),
    "P27": _changes_responses("Fetch", _brings(lambda data: data[81:])),
    "P28": _changes_responses("Fetch", _brings(lambda _: b"")),
    "P29": _hides_errors("Fetch"),
    "P30": _changes_requests("Fetch", max_wait_ms=0),
    "P31": _hides_errors("Fetch", "INVALID_FETCH_SESSION_EPOCH"),
    "P32": _hides_errors("ListOffsets"),
    "P33": _changes_responses("ListOffsets", _delays),
    "P34": _changes_responses("Fetch", _brings(lambda data: data[:-1] + b"\xff" if data else data)),
    "P35": _changes_requests("Fetch", isolation_level=0),
    "P36": _hides_errors("EndTxn"),
    "P37": _hides_errors("EndTxn"),
    "P38": _hides_errors("JoinGroup", "MEMBER_ID_REQUIRED"),
    "P39": _changes_responses("SyncGroup", _assigns_nothing),
    "P40": _hides_errors("JoinGroup", "INVALID_SESSION_TIMEOUT"),
    "P41": _hides_errors("ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH"),
    "P42": _hides_errors("CreateTopics", "INVALID_TOPIC_EXCEPTION"),
    "P43": _changes_responses("DescribeConfigs", _lists_nothing),
    "P44": _hides_errors("CreatePartitions"),
    "P45": _hides_errors("DeleteRecords"),
    "P46": _changes_responses("OffsetFetch", _drops_metadata),
    "P47": _hides_errors("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"),
    "T09": _hides_errors("InitProducerId"),
}
"""P16, which needs SASL, has a scripted broker in tests/conform/probe/test_probe_runner.py."""
