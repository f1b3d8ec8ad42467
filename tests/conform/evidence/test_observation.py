"""Observations, the input of rules."""

from __future__ import annotations

from uuid import UUID

import pytest

from conform.evidence.batch_observation import BatchObservation
from conform.evidence.observation import ConnectionObservation, Observation
from conform.evidence.reporter import Reporter
from conform.registry.field_range import span_of
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from dissector.protocol.messages import decode_request
from dissector.protocol.records import Record, build_records, new_batch
from tests.conform.scene import Scene
from tests.default_frames import sized
from tests.dissector.cli.cli_traffic import request_frame

PRODUCE, METADATA, HEARTBEAT = 0, 3, 12
RECORDS = build_records(
    [new_batch([Record(value=b"one")]), new_batch([Record(value=b"two"), Record(value=b"three")])]
)


def _observations(scene: Scene, on: str = "exchange") -> list:
    """Return the observations passed to a rule."""
    seen: list = []
    rule = Rule(
        "F99",
        "t",
        Severity.NOTE,
        "s",
        "a.",
        "e",
        on,
        (),
        lambda observation, reporter: seen.append(observation),
    )
    scene.judge([rule])
    return seen


def test_only_complete_messages_have_bodies() -> None:
    scene = Scene()
    connection = (
        scene.connect()
        .request(HEARTBEAT, 4, 1, group_id="g", member_id="m")
        .response(HEARTBEAT, 4, 1)
    )
    connection.client(
        sized(request_frame(HEARTBEAT, 4, 2, group_id="g", member_id="m")[4:] + b"\1")
    )
    connection.response(HEARTBEAT, 4, 2).request(HEARTBEAT, 4, 3, group_id="g", member_id="m")
    good, odd, lonely = _observations(scene)
    assert (
        good.request_body.group_id,
        good.response_body.error_code,
        good.unreadable_reason(),
    ) == ("g", 0, "")
    assert (odd.request_body, odd.unreadable_reason()) == (
        None,
        "the request has bytes after its body",
    )
    assert (odd.response_body.error_code, odd.unreadable_reason(request=False)) == (0, "")
    assert lonely.unreadable_reason() == "the response is not in the capture"
    assert (lonely.api_key, lonely.version, lonely.is_complete) == (HEARTBEAT, 4, True)
    assert good.request_offset == 0 < odd.request_offset < lonely.request_offset


def test_a_truncated_request_has_missing_bytes() -> None:
    scene = Scene()
    scene.connect().request(METADATA, 9, 1, topics=[{"name": "orders"}]).response(METADATA, 9, 1)
    scene.cut(0, 20)
    (observation,) = _observations(scene)
    assert observation.unreadable_reason() == "some bytes of the request were not captured"
    assert observation.connection.incomplete_reason == "packets of the connection are truncated"
    assert not observation.is_complete


def test_a_message_incomplete_at_the_end_of_its_connection() -> None:
    scene = Scene()
    connection = (
        scene.connect()
        .request(METADATA, 9, 1, topics=[{"name": "orders"}])
        .response(METADATA, 9, 1)
    )
    connection.client(
        sized(request_frame(METADATA, 9, 2, topics=[{"name": "orders"}])[4:])[:-5]
    ).rst()
    observations = list(_observations(scene))
    assert observations[-1].unreadable_reason() == "the connection ended within the request"


def _produced(**topic: object) -> Scene:
    data = [{**topic, "partition_data": [{"index": 3, "records": RECORDS}]}]
    version = 13 if "topic_id" in topic else 9
    return (
        Scene()
        .connect()
        .request(PRODUCE, version, 1, acks=-1, topic_data=data)
        .response(PRODUCE, version, 1)
        .scene
    )


def test_batches_have_positions() -> None:
    first, second = _observations(_produced(name="orders"), "batch")
    assert isinstance(first, BatchObservation)
    assert (first.topic, first.partition, len(second.batch.records)) == ("orders", 3, 2)
    assert second.path == "topic_data[0].partition_data[0].records[1]"
    frame = second.message.frame
    start, end = first.span()
    assert frame[start : second.span()[0]] + frame[slice(*second.span())] == RECORDS
    assert second.span()[0] == end
    assert second.span(16, 17) == (end + 16, end + 17)
    assert frame[end + 16] == 2


def test_an_unnamed_topic_is_shown_by_id() -> None:
    topic_id = UUID(int=7)
    topics = []

    def call(observation: BatchObservation, reporter: Reporter) -> None:
        topics.append(observation.topic)

    rule = Rule("F99", "t", Severity.NOTE, "s", "a.", "e", "batch", (), call)
    _produced(topic_id=topic_id).judge([rule])
    assert topics == [str(topic_id)] * 2


def test_spans_are_found_by_path() -> None:
    message = decode_request(
        request_frame(METADATA, 9, 1, topics=[{"name": "a"}, {"name": "orders"}])[4:]
    )
    start, end = span_of(message, "topics[1].name") or (0, 0)
    assert message.frame[start:end] == b"\x07orders"
    assert span_of(message, "topics[1].name.beyond[3]") == (start, end)
    assert span_of(message, "nothing") is None


@pytest.mark.parametrize(("fin", "ended"), [(True, "fin"), (False, "")])
def test_the_end_of_a_connection(fin: bool, ended: str) -> None:
    scene = Scene()
    connection = (
        scene.connect().request(METADATA, 9, 1, topics=None).request(METADATA, 9, 2, topics=None)
    )
    connection.response(METADATA, 9, 2)
    if fin:
        connection.fin()
    (closing,) = _observations(scene, "close")
    assert isinstance(closing, ConnectionObservation)
    assert not isinstance(closing, Observation)
    assert closing.connection.ended == ended
    assert [each.exchange.correlation_id for each in closing.connection.unanswered] == [1]
    assert closing.connection.last_answered[1] == 2


def test_retained_observations_do_not_hold_the_window() -> None:
    scene = Scene()
    scene.connect().request(METADATA, 9, 1, topics=[{"name": "orders"}])
    (closing,) = _observations(scene, "close")
    (observation,) = closing.connection.unanswered
    assert observation.request_body.topics[0].name == "orders"
    assert len(observation.exchange._table.data) == 0
