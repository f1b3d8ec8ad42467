"""Bodies for programs have the names of topics that messages identify by id."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from uuid import UUID

import pytest
from construct import Container

from dissector import codec, open_capture
from dissector.engine.exchanges.body_fields import Context, body_fields
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.protocol.codecs.codec import COMPILE_AFTER
from dissector.protocol.messages import Message

CAPTURES = Path(__file__).parents[4] / "captures"
DEMO = CAPTURES / "demo.pcap"


@pytest.fixture(scope="module")
def fetches() -> list[Exchange]:
    """Fetch exchanges with a topic in the response, identified by id."""
    text = "api == Fetch and api_version >= 13 and response.responses.topic_id"
    return [exchange.kept() for exchange in open_capture(DEMO, filter=text)]


def test_a_topic_with_an_id_has_the_name_that_the_capture_knows(fetches: list[Exchange]) -> None:
    assert fetches
    for exchange in fetches:
        assert exchange.response is not None
        body = exchange.response.body
        assert body is not None
        (topic,) = body.responses
        assert [topic.topic] == [topic.name] == exchange.topics == ["demo.orders"]
        assert "topic" not in topic
        assert isinstance(topic.topic_id, UUID)
        assert "topic" in dir(topic)
        assert "topic" not in dir(body)


def test_older_versions_have_their_own_field() -> None:
    older = "api == Fetch and api_version < 13 and response.responses.topic"
    found = open_capture(CAPTURES / "kafka39-kafka-python-as-0.10.0.pcap", filter=older)
    topics = {
        topic.topic
        for exchange in found
        if exchange.response is not None and exchange.response.body is not None
        for topic in exchange.response.body.responses
    }
    assert topics
    assert all(isinstance(each, str) for each in topics)


def test_an_id_without_a_name_is_its_text() -> None:
    known, unknown = UUID(int=7), UUID(int=8)
    names = TopicNames()
    names.learn({known: "orders"})
    topics = [
        Container(topic_id=known),
        Container(topic_id=unknown),
        Container(topic_id=UUID(int=0)),
        Container(topic_id=known, name=None),
        Container(topic_id=UUID(int=0), name="by name"),
    ]
    body = Container(topics=topics)
    wrapped = body_fields(body, Context(Message("request", b"", 0, 1, 13), names))
    found = [each.topic for each in wrapped.topics]
    assert found == ["orders", str(unknown), None, "orders", "by name"]
    assert wrapped == body


def test_a_missing_field_is_told_in_one_line(fetches: list[Exchange]) -> None:
    message = fetches[0].response
    assert message is not None
    assert message.body is not None
    version = message.api_version
    for wrong, suggested in (("topics", ""), ("response", "; did you mean responses?")):
        expected = f"Fetch v{version} response has no field {wrong!r} here{suggested}; fields: "
        expected += ", ".join(message.body)
        with pytest.raises(AttributeError) as error:
            getattr(message.body, wrong)
        assert str(error.value) == expected
        assert error.value.__cause__ is error.value.__context__ is None
        with pytest.raises(KeyError) as missing:
            message.body[wrong]
        assert missing.value.args == (expected,)
        assert message.body.get(wrong) is None
    with pytest.raises(AttributeError, match="no field 'topic' here"):
        message.body.topic  # noqa: B018


def test_bodies_are_encoded_and_copied_as_plain_ones(fetches: list[Exchange]) -> None:
    for exchange in fetches:
        for message in exchange.messages:
            assert message.body is not None
            assert message.api_key is not None
            assert message.api_version is not None
            made = codec(message.api_key, message.api_version, message.kind)
            data = message.frame[message.body_start :]
            assert made.build(message.body) == data
            for _ in range(COMPILE_AFTER + 1):
                made.parse(data)
            assert made.compiled is not None
            plain = made.parse(data)
            for other in (copy.deepcopy(message.body), pickle.loads(pickle.dumps(message.body))):
                assert other == message.body == plain
                assert type(other) is Container
