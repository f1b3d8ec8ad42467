"""Schema ids of one registry become those of another, to the log of the target."""

from __future__ import annotations

import json

import pytest

from cluster.mock.embedded_broker import EmbeddedBroker
from dissector.cli import main
from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from replay import Pace, Plan, replay
from replay.plan.schema_mapping import SchemaMapping
from tests.corpus import FOLDER
from tests.replay.support.fake_registry import FakeRegistry, fake_registry
from tests.replay.test_recorded_replay import stored_records
from tests.waiting import PATIENCE_S

CAPTURE = FOLDER / "values" / "franz-go-sr.pcap"


def reader_of(registry: FakeRegistry) -> ValueReader:
    """Return a reader that knows only the schemas of a registry."""
    store = SchemaStore()
    for subject, texts in registry.subjects.items():
        for version, text in enumerate(texts, 1):
            entry = {"subject": subject, "version": version, "id": registry.ids[text]}
            add_entry(store, {**entry, **json.loads(text)})
    return ValueReader(store, TopicFormats())


@pytest.mark.long
def test_the_log_of_the_target_has_ids_of_its_registry(capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads(CAPTURE.with_suffix(".json").read_text("utf-8"))
    with fake_registry() as registry:
        ids = ("--map-schemas", registry.url)
        assert main(["replay", str(CAPTURE), "--to", "127.0.0.1:1", *ids]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "id 41 (franz-go-sr.orders.avro-value v1, 4 records)" in line
        mapping = SchemaMapping(registry.url, registers=True)
        with (
            Plan.of(CAPTURE, schema_mapping=mapping) as plan,
            EmbeddedBroker(1, plan.topics) as target,
        ):
            replay(plan, target.addresses[0], pace=Pace(0), timeout_s=PATIENCE_S)
            written = stored_records(target.addresses[0])
        assert sorted(registry.ids.values()) == [100, 101, 102]
        with Plan.of(CAPTURE, schema_mapping=SchemaMapping(registry.url)) as plan:
            assert not plan.problems  # all are registered now
        reader = reader_of(registry)
    found = {topic: records for (topic, _), records in written.items() if records}
    assert set(found) == set(expected)
    for topic, records in found.items():
        values = [reader.read(topic, record[2]) for record in records]
        assert [each.value for each in values] == expected[topic]["values"]
        assert {each.schema for each in values} == {expected[topic]["schema"]}
