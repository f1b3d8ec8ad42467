"""For each rule that only a running broker can show, a false answer that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.error_codes import error_code
from dissector.protocol.messages import Message
from tests.broker.conform.relay import HANG_UP, Lie, rewritten


def _hushes(api: str, *names: str) -> Lie:
    """Lie about errors: there were none."""
    codes = {error_code(name) for name in names}

    def hush(body: Any) -> None:
        if isinstance(body, list):
            for each in body:
                hush(each)
        elif isinstance(body, Container):
            for name, value in body.items():
                if name.endswith("error_code") and (value in codes or (value and not names)):
                    body[name] = 0
                hush(value)

    def on_answer(request: Message, response: Message) -> None:
        if request.api == api:
            hush(response.body)

    return Lie(on_answer=on_answer)


def _changes(api: str, change: Callable[[Container, Container], None]) -> Lie:
    """Change the bodies of answers; the change is given request and answer."""

    def on_answer(request: Message, response: Message) -> None:
        if request.api == api and request.body is not None and response.body is not None:
            change(request.body, response.body)

    return Lie(on_answer=on_answer)


def _bends(api: str, **values: Any) -> Lie:
    """Change fields of requests before the broker gets them."""

    def on_request(request: Message) -> None:
        if request.api == api and request.body is not None:
            request.body.update(values)

    return Lie(on_request=on_request)


def _numbers(api: str) -> Lie:
    """Answer under another correlation id."""

    def on_answer(request: Message, response: Message) -> bytes | None:
        if request.api != api:
            return None
        frame = rewritten(response)
        return bytes((frame[0] ^ 1,)) + frame[1:]

    return Lie(on_answer=on_answer)


def _too_new_is_fine(request: Message, response: Message) -> bytes | None:
    is_refused = response.frame[4:6] == b"\0\x23"
    return response.frame[:4] + b"\0\0" + response.frame[6:] if is_refused else None


def _more_bytes(request: Message, response: Message) -> bytes | None:
    return rewritten(response) + b"\0" if request.api == "ListGroups" else None


def _less_in_v0(request: Message, response: Message) -> None:
    if request.api == "ApiVersions" and request.api_version == 0 and response.body is not None:
        response.body.api_keys.pop()


def _knows_no_tags(request: Message, response: Message) -> str | None:
    return HANG_UP if request.body is not None and UNKNOWN_TAGS in str(request.body) else None


def _returns_a_topic_more(request: Container, response: Container) -> None:
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


def _is_late(_: Container, response: Container) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition["offset"] = partition.get("offset", 0) + 3


def _assigns_nothing(_: Container, response: Container) -> None:
    response.assignment = b""


def _forgets_notes(_: Container, response: Container) -> None:
    for group in response.get("groups") or [response]:
        for topic in group.topics:
            for partition in topic.partitions:
                partition.metadata = ""


def _lists_nothing(_: Container, response: Container) -> None:
    for result in response.results:
        result.configs = []


_PRODUCED = b"\0\0\0\0" + b"\0\0\0\0"
"""The answer of a Produce request to no topics."""

LIES = {
    "B21": _hushes("Produce", "INVALID_RECORD"),
    "E08": Lie(on_answer=_knows_no_tags),
    "F12": Lie(holds_on=True),
    "P01": Lie(on_answer=_more_bytes),
    "P02": Lie(on_answer=_too_new_is_fine),
    "P03": Lie(on_answer=_less_in_v0),
    "P04": _hushes("ApiVersions", "INVALID_REQUEST"),
    "P05": Lie(holds_on=True),
    "P06": Lie(holds_on=True),
    "P07": _numbers("Metadata"),
    "P08": _numbers("ApiVersions"),
    "P09": _numbers("ApiVersions"),
    "P10": _hushes("ListOffsets"),
    "P11": _hushes("Fetch"),
    "P12": _hushes("Heartbeat"),
    "P13": _hushes("EndTxn"),
    "P14": _changes("Metadata", _returns_a_topic_more),
    "P15": _changes("DescribeCluster", _lists_a_broker_twice),
    "P17": _hushes("SaslHandshake"),
    "P18": Lie(answers_all=_PRODUCED),
    "P19": Lie(holds_on=True),
    "P20": _hushes("Produce"),
    "P21": _changes("Produce", _moves(1)),
    "P22": _hushes("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    "P23": _hushes("Produce", "UNSUPPORTED_COMPRESSION_TYPE"),
    "P24": _hushes("Produce"),
    "P25": _hushes("Produce"),
    "P26": _changes("Produce", _moves(5)),
    "P27": _changes("Fetch", _brings(lambda data: data[81:])),
    "P28": _changes("Fetch", _brings(lambda _: b"")),
    "P29": _hushes("Fetch"),
    "P30": _bends("Fetch", max_wait_ms=0),
    "P31": _hushes("Fetch", "INVALID_FETCH_SESSION_EPOCH"),
    "P32": _hushes("ListOffsets"),
    "P33": _changes("ListOffsets", _is_late),
    "P34": _changes("Fetch", _brings(lambda data: data[:-1] + b"\xff" if data else data)),
    "P35": _bends("Fetch", isolation_level=0),
    "P36": _hushes("EndTxn"),
    "P37": _hushes("EndTxn"),
    "P38": _hushes("JoinGroup", "MEMBER_ID_REQUIRED"),
    "P39": _changes("SyncGroup", _assigns_nothing),
    "P40": _hushes("JoinGroup", "INVALID_SESSION_TIMEOUT"),
    "P41": _hushes("ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH"),
    "P42": _hushes("CreateTopics", "INVALID_TOPIC_EXCEPTION"),
    "P43": _changes("DescribeConfigs", _lists_nothing),
    "P44": _hushes("CreatePartitions"),
    "P45": _hushes("DeleteRecords"),
    "P46": _changes("OffsetFetch", _forgets_notes),
    "P47": _hushes("OffsetFetch", "UNSTABLE_OFFSET_COMMIT"),
    "T09": _hushes("InitProducerId"),
}
"""P16, which needs SASL, has a scripted broker in tests/conform/probe/test_probe_runner.py."""
