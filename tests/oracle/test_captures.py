"""Every message of every capture, decoded and encoded by Kafka's own classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector import dissect
from dissector.protocol.messages import Message
from dissector.protocol.records import UnreadBatch
from dissector.protocol.records_fields import records_fields
from tests.oracle.kafka_classes import Oracle
from tests.oracle.kafka_records import assert_agrees
from tests.oracle.release_comparison import Subject
from tests.oracle.test_message_classes import releases_of
from tools.record.manifest import keylogs

Count = Counter[tuple[str, str]]
pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

ROOT = Path(__file__).parents[2]
CAPTURES = [
    path
    for folder in ("captures", "../shared/captures/kafka")
    for path in sorted((ROOT / folder).glob("*.pcap*"))
]


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
def test_messages_of_a_capture(oracles: list[Oracle], compared: Count, capture: Path) -> None:
    messages = list(decodable_messages(capture))
    assert messages
    for message in messages:
        compare_header(oracles[-1], message)
        known = compare_body(oracles, message)
        for release in known:
            compared["messages of captures", release] += 1
        assert known
        compared["messages of captures", "(either)"] += 1
        for field in records_fields(message):
            # Kafka skips a truncated batch at the end of a Fetch response.
            batches = [each for each in field.batches if not isinstance(each, UnreadBatch)]
            for oracle in oracles:
                assert_agrees(oracle.read_records(field.data), batches)
                compared["batches of captures", oracle.jars.version] += len(batches)


def decodable_messages(capture: Path) -> Iterator[Message]:
    """Yield the decodable messages."""
    for exchange in dissect(capture, keylogs=keylogs(capture)):
        yield from (message for message in exchange.messages if message.body is not None)


def compare_header(oracle: Oracle, message: Message) -> None:
    schema, version = message.header
    data = message.frame[: message.body_start]
    body = schema.codec(version).parse(data)
    Subject(schema, {"name": f"{message.kind.title()}HeaderData"}).assert_agrees(
        oracle, version, body, data
    )


def compare_body(oracles: list[Oracle], message: Message) -> list[str]:
    """Compare a body with each release that has its version; return these releases."""
    version = message.api_version
    assert message.api_key is not None
    assert version is not None
    assert message.body is not None
    data = message.frame[message.body_start : message.body_end]
    known = []
    for oracle, each, versions in releases_of(oracles, message.api_key, message.kind):
        if version in versions:
            each.assert_agrees(oracle, version, message.body, data)
            known.append(oracle.jars.version)
    return known
