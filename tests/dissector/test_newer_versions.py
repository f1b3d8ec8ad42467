"""Versions above the newest known one are decoded like that, with a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dissector import open_capture
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.fields.field_predicates import matches_any_value
from dissector.engine.fields.field_reader import FieldReader
from dissector.filter import parse
from dissector.protocol.api import Api
from dissector.protocol.apis import KEYS, api
from dissector.protocol.embedded.masking import carries_secrets
from dissector.protocol.messages import decode_request, decode_response
from dissector.protocol.records import Record, build_records, new_batch
from dissector.view.text.detail_tree import detail_tree
from dissector.view.text.summary_line import LineStyle, MessageSummary, message_line
from tests.default_frames import request, response, sized
from tests.dissector.engine.exchanges.test_exchange_facts import (
    ANSWERED,
    by_codecs,
    by_columns,
    of_version,
    row,
)
from tests.dissector.engine.fields.test_field_reader import (
    CodecsOnly,
    assert_same,
    capture_of,
    whole,
)
from tests.dissector.engine.records.test_record_windows import in_parts, one_by_one
from tests.dissector.view import bulk
from tests.reference.correlation.exchange_rows import to_exchange_table
from tests.tcp_captures import Wire, write
from tests.value_sources import Source, every_api, go_through

METADATA, API_VERSIONS = KEYS["Metadata"], KEYS["ApiVersions"]
CREATE_TOPICS, FETCH = KEYS["CreateTopics"], KEYS["Fetch"]


def newer(found: Api, source: Source, more: bytes = b"") -> tuple[bytes, bytes]:
    """Return an exchange in the version above the newest, with its layout and more bytes."""
    newest = found.request.versions.high
    request_frame = request(found.key, newest, 1, "me", **source.value(found.request, newest))
    response_frame = response(found.key, newest, 1, **source.value(found.response, newest))
    return of_version(sized(request_frame[4:] + more), newest + 1), sized(response_frame[4:] + more)


@pytest.mark.thinned(3)
@every_api
def test_a_newer_version_is_decoded_as_the_newest_known(found: Api) -> None:
    newest = found.request.versions.high

    def check(more: bytes, source: Source) -> None:
        request_frame, response_frame = newer(found, source, more)
        messages = (
            decode_request(request_frame[4:]),
            decode_response(response_frame[4:], found.key, newest + 1),
        )
        known = (
            decode_request(of_version(request_frame, newest)[4:]),
            decode_response(response_frame[4:], found.key, newest),
        )
        for message, like in zip(messages, known, strict=True):
            assert message.body == like.body
            assert message.is_assumed
            assert (message.api_version, message.shown_version) == (newest, newest + 1)
            assert [problem.kind for problem in message.problems] == ["assumed"]
            what = f"version {newest + 1} of {found.name} is not known (known: "
            assert message.problems[0].what.startswith(what)
            assert message.frame[message.body_end :] == more

    go_through([b"", b"new"], check)


@pytest.mark.thinned(3)
@every_api
def test_an_undecodable_newer_message_is_of_an_unknown_version(found: Api) -> None:
    newest = found.request.versions.high
    header = of_version(request(found.key, newest, 7, "me"), newest + 1)[4:]
    flexible = newest in found.request.flexible
    message = decode_request(header[:12] + b"\0" * flexible + b"\xff" * 9)
    if message.is_assumed:
        return  # few bytes, which fit
    assert (message.body, message.schema, message.correlation_id) == (None, None, 7)
    assert message.shown_version == newest + 1
    assert [problem.kind for problem in message.problems] == [""]
    what = (
        f"version {newest + 1} of {found.name} is not known (known: {found.request.versions_text})"
    )
    assert message.problems[0].what == what


@pytest.mark.thinned(12)
@every_api
def test_all_paths_agree(found: Api) -> None:
    """Valid and damaged, alone or among others."""

    def check(how: str, source: Source) -> None:
        request_frame, response_frame = newer(found, source, b"\0" * (how == "more"))
        if how == "damaged":
            request_frame = sized(request_frame[4:16] + source.damaged(request_frame[16:]))
            response_frame = sized(response_frame[4:8] + source.damaged(response_frame[8:]))
        table = to_exchange_table([row(ANSWERED, request_frame, response_frame)])
        assert by_columns(table) == by_codecs(table)
        for show_secrets in (False, True):
            assert_same(
                *(
                    whole(kind(capture_of(table), show_secrets), table)
                    for kind in (FieldReader, CodecsOnly)
                )
            )
            bulk.check([row(ANSWERED, request_frame, response_frame)], show_secrets)
        rows, _ = in_parts(table, TopicNames())
        assert rows == one_by_one(table, TopicNames())

    go_through(["whole", "more", "damaged"], check)


def test_versions_far_beyond_the_newest() -> None:
    found = api(METADATA)
    assert found is not None
    request_frame, response_frame = (
        request(METADATA, 13, 1),
        response(METADATA, 13, 1, controller_id=5),
    )
    for version in (14, 63, 64, 200, 32767):
        table = to_exchange_table(
            [row(ANSWERED, of_version(request_frame, version), response_frame)]
        )
        assert by_columns(table) == by_codecs(table)
        at = np.arange(1)
        answers = matches_any_value(table, "response", ("controller_id",), at, lambda raw: raw == 5)
        assert answers.unknown.all(), "left to the codecs"
        assert exchange_of(table).body("response") is not None


def exchange_of(table: Any) -> Exchange:
    return Exchange(table, 0, capture="", client="", broker="", names=TopicNames())


def _file(folder: Path, *said: tuple[bytes, bytes]) -> Path:
    wire = Wire()
    connection = wire.connect().syn()
    for request_frame, response_frame in said:
        connection.client(request_frame).broker(response_frame)
    return Path(write(folder / "newer.pcap", wire.packets))


def test_filters_match_newer_versions(tmp_path: Path) -> None:
    newer_request = of_version(request(METADATA, 13, 1), 14)
    known = request(METADATA, 13, 2), response(METADATA, 13, 2, controller_id=6)
    file = _file(tmp_path, (newer_request, response(METADATA, 13, 1, controller_id=5)), known)
    chosen = parse("response.controller_id == 5")
    found = [each for each in open_capture(file) if chosen.matches(each)]
    assert [each.api_version for each in found] == [14]
    assert [problem.kind for problem in found[0].problems] == ["assumed", "assumed"]


def test_records_of_a_newer_fetch(tmp_path: Path) -> None:
    batch = new_batch([Record(timestamp=1, key=b"k", value=b"v")])
    partition = {"partition_index": 3, "records": build_records([batch])}
    answer = [{"topic": "orders", "partitions": [partition]}]
    response_frame = response(FETCH, 18, 1, responses=_by_id(answer))
    file = _file(tmp_path, (of_version(request(FETCH, 18, 1), 19), response_frame))
    (record,) = open_capture(file).records().rows(named=True)
    assert (record["partition"], record["key"], record["value"]) == (3, b"k", b"v")


def _by_id(responses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from uuid import UUID

    zeros = {"error_code": 0, "high_watermark": 1, "aborted_transactions": None}
    for topic in responses:
        del topic["topic"]
        topic["topic_id"] = UUID(int=9)
        topic["partitions"] = [{**zeros, **each} for each in topic["partitions"]]
    return responses


def test_a_refused_api_versions_shows_the_offered_versions() -> None:
    decoded = decode_request(of_version(request(API_VERSIONS, 5, 1), 6)[4:])
    assert decoded.is_assumed
    offer = [{"api_key": 18, "min_version": 0, "max_version": 5}]
    refusal = response(API_VERSIONS, 0, 1, error_code=35, api_keys=offer)
    message = decode_response(refusal[4:], API_VERSIONS, 6)
    assert message.body is not None
    assert (message.body.api_keys[0].max_version, message.api_version) == (5, 0)
    assert (message.is_assumed, message.problems) == (False, [])
    answer = response(API_VERSIONS, 5, 1, api_keys=offer)
    message = decode_response(answer[4:] + b"new", API_VERSIONS, 6)
    assert message.body is not None
    assert (message.body.api_keys[0].max_version, message.is_assumed) == (5, True)


def test_line_and_tree_show_the_sent_version() -> None:
    message = decode_request(of_version(request(METADATA, 13, 1), 14)[4:] + b"\7")
    line = message_line(MessageSummary(message, 1, 0, 0, "a", "b"), LineStyle(0))
    assert "Metadata v14 request" in line
    lines = detail_tree(message)
    assert lines[0].startswith("Metadata v14 request")
    assert any("left over: 1 byte 07" in each for each in lines)
    assert lines[-1].endswith("known: 0-13): assumed to be like version 13")


@pytest.mark.parametrize("show_secrets", [False, True])
def test_bodies_with_possible_secrets_are_masked_completely(show_secrets: bool) -> None:
    """A secret may be at the position of another field of the newest known version."""
    found = api(CREATE_TOPICS)
    assert found is not None
    assert carries_secrets(found.request.fields)
    newer_request = of_version(request(CREATE_TOPICS, 7, 1, topics=[_topic("hunter2")]), 8)
    rows = [row(ANSWERED, newer_request, response(CREATE_TOPICS, 7, 1))]
    ((text, _),) = bulk.check(rows, show_secrets)
    shown = "".join(detail_tree(decode_request(newer_request[4:]), show_secrets=show_secrets))
    assert ("hunter2" in (text or ""), "hunter2" in shown) == (show_secrets, show_secrets)
    assert exchange_of(to_exchange_table(rows)).topics == []


def _topic(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1} | {
        "assignments": [],
        "configs": [],
    }
