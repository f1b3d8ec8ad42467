"""Names of topic ids that the capture lacks: from lists, captures and a broker."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dissector import UsageError, open_capture
from dissector.cli import main
from dissector.protocol.messages import Message
from tests.dissector.engine.facts.test_topic_table import NAMELESS, ORDERS, fetched, named
from tests.replay.support.scripted_broker import scripted
from tests.tcp_captures import Wire, write

LISTS = {
    "described": "Topic: orders\tTopicId: AAAAAAAAAAAAAAAAAAAABQ\tPartitionCount: 4\tConfigs: \n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\n",
    "json": json.dumps(
        {"topics": [{"partitions": [1], "topic": "orders", "topic_id": str(ORDERS)}]}
    ),
    "lines of json": '{"a": 1}\n'
    '{"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAABQ"}\n'
    "no json {\n",
    "words": f"NAME ID PARTITIONS\norders {ORDERS} 4\n",
}


@pytest.fixture
def midway(tmp_path: Path) -> Path:
    """Return a capture with two ids and no names."""
    wire = Wire()
    fetched(fetched(wire.connect().syn(), 1, ORDERS), 2, NAMELESS)
    return write(tmp_path / "midway.pcap", wire.packets)


@pytest.mark.parametrize("form", LISTS)
def test_names_of_a_list(form: str, midway: Path, tmp_path: Path) -> None:
    names = tmp_path / "names"
    names.write_text(LISTS[form])
    capture = open_capture(midway, filter="topic == orders", topic_names=[names])
    assert capture.exchanges()["topics"].to_list() == [["orders"]]
    assert capture.records()["topic"].to_list() == ["orders"]


def test_names_of_another_capture_and_of_a_mapping(midway: Path, tmp_path: Path) -> None:
    wire = Wire()
    named(wire.connect().syn(), 1)
    other = write(tmp_path / "other.pcap", wire.packets)
    for given in ([other], {ORDERS: "orders"}):
        topics = open_capture(midway, topic_names=given).exchanges()["topics"].to_list()
        assert topics == [["orders"], [str(NAMELESS)]]


def test_ids_without_a_name_are_said_once(
    midway: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert main(["records", str(midway)]) == 0
    assert capsys.readouterr().err == ""  # no terminal
    monkeypatch.setattr("dissector.cli.capture_source.shows_hints", lambda: True)
    names = tmp_path / "names"
    names.write_text(LISTS["described"])
    said = "{} no message names {}; --topic-names FILE|HOST:PORT does (docs/live.md)\n"
    for words, what in (
        ([], said.format("2 topics are shown by their ids:", "them")),
        (["--topic-names", names], said.format("1 topic is shown by its id:", "it")),
    ):
        given = ["records", midway, "--columns", "topic", "-T", "csv", *words]
        status, (out, err) = main(list(map(str, given))), capsys.readouterr()
        assert (status, err) == (0, f"kafkashark: {what}")
        assert ("orders" in out) == bool(words)


def test_names_of_a_broker(midway: Path) -> None:
    """Only the given address is contacted: the brokers that it names are elsewhere."""

    def metadata(message: Message) -> dict[str, Any]:
        topic = {"error_code": 0, "name": "orders", "topic_id": ORDERS, "partitions": []}
        broker = {"node_id": 1, "host": "elsewhere.invalid", "port": 9092, "rack": None}
        return {"throttle_time_ms": 0, "brokers": [broker], "controller_id": 1, "topics": [topic]}

    async def asked() -> list[list[str]]:
        async with scripted({"Metadata": metadata}) as broker:
            address = f"127.0.0.1:{broker.port}"
            opened = await asyncio.to_thread(open_capture, midway, topic_names=[address])
        return opened.exchanges()["topics"].to_list()

    assert asyncio.run(asked()) == [["orders"], [str(UUID(int=2))]]


def test_sources_without_names(
    midway: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = tmp_path / "cluster"
    cluster.write_text(' topic "orders" with 4 partitions:\n    partition 0, leader 1\n')
    for source in (cluster, midway):
        assert main(["pairs", str(midway), "--topic-names", str(source)]) == 2
        said = f"kafkashark: {source}: no names of topic ids in it; "
        assert capsys.readouterr().err.startswith(said)
    absent = tmp_path / "absent"
    assert main(["pairs", str(midway), "--topic-names", str(absent)]) == 2
    assert capsys.readouterr().err == f"kafkashark: {absent}: No such file or directory\n"
    assert any(open_capture(midway))  # the option ended with its command
    with pytest.raises(UsageError, match="topic_names takes several"):
        open_capture(midway, topic_names="names")
