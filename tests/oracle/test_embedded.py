"""Every schema in bytes fields and records, decoded and encoded by Kafka's own classes."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

import pytest

from dissector.protocol import embedded
from dissector.protocol.schema import Schema
from tests.oracle import drawn
from tests.oracle.kafka_classes import Oracle, OracleError
from tests.oracle.release_comparison import Subject

Count = Counter[tuple[str, str]]
pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(embedded.__path__, f"{embedded.__name__}.")
]
SCHEMAS = {
    name: (schema, module.__name__.endswith("_coordinator"))
    for module in MODULES
    for name, schema in vars(module).items()
    if isinstance(schema, Schema)
}
"""Name -> our declaration, and whether a coordinator writes it."""

NEWER_TAGS: dict[tuple[str, str], tuple[str, ...]] = {
    ("3.9.x", "ConsumerGroupCurrentMemberAssignmentValue"): ("assignmentEpochs",),
    ("3.9.x", "ConsumerGroupMetadataValue"): ("metadataHash",),
    ("3.9.x", "ConsumerGroupTargetAssignmentMetadataValue"): ("assignmentTimestamp",),
    ("3.9.x", "OffsetCommitValue"): ("topicId",),
    ("3.9.x", "RemoteLogSegmentMetadataRecord"): ("txnIndexEmpty",),
    ("3.9.x", "RemoteLogSegmentMetadataSnapshotRecord"): ("txnIndexEmpty",),
    ("3.9.x", "TransactionLogValue"): (
        "previousProducerId",
        "nextProducerId",
        "clientTransactionVersion",
        "nextProducerEpoch",
    ),
}
"""Tagged fields that came to a version later: the release keeps their bytes, without a name."""

OTHER_BYTES = {
    # Share groups were unfinished in Kafka 3.9: no broker wrote this.
    ("3.9.x", "ShareGroupMetadataValue"),
    ("3.9.x", "ShareGroupPartitionMetadataValue"),
}
"""What one release lays out otherwise than we do under the same version."""

OTHER_CLASSES = {
    # Kafka 4.0 made a class of each kind of key; version 0 of this one was a separate kind.
    ("4.x", "OffsetCommitKey", 0): "LegacyOffsetCommitKey",
    ("4.x", "ControlRecordKey", 0): "ControlRecordTypeSchema",
}
"""What a release keeps under another name than we do."""

NOT_GENERATED = {
    "ConnectWorkerMetadata",
    "ConnectAssignment",
    "StickyUserData",
    "CooperativeStickyUserData",
}
"""What Kafka reads by code that is written by hand."""

ONLY_IN_4_0 = {"ShareGroupPartitionMetadataValue"}
"""What only the early access of share groups wrote, a release that is not asked."""

NOT_DECLARED = {
    # The file `quorum-state` of a controller, never sent.
    "QuorumStateData",
    # A file beside each log segment, never sent.
    "ProducerSnapshot",
    # v0 of OffsetCommitValue, under a name that Kafka 4.0 gave it.
    "LegacyOffsetCommitValue",
    # Another file, of the aborted transactions in it.
    "AbortedTxn",
}
"""What Kafka generates and we do not read."""


def subject(oracle: Oracle, name: str, version: int) -> Subject:
    """Return a version of ours under the names of a release."""
    schema, of_coordinator = SCHEMAS[name]
    names = dict.fromkeys(NEWER_TAGS.get((oracle.line, name), ()))
    other = OTHER_CLASSES.get((oracle.line, name, version))
    # Until 3.9 the number in front of a key was its version; now it is its kind, and all are v0.
    numbered = oracle.line != "3.9.x" and of_coordinator and name.endswith("Key")
    lag = schema.versions.high if numbered and other is None else 0
    return Subject(schema, {"name": other or name}, names, lag)


@pytest.mark.parametrize("name", SCHEMAS)
def test_drawn_values(oracles: list[Oracle], compared: Count, name: str) -> None:
    schema, _ = SCHEMAS[name]
    for version in schema.versions:
        subjects = [(oracle, subject(oracle, name, version)) for oracle in oracles]
        subjects = [
            (oracle, each)
            for oracle, each in subjects
            if version in each.versions(oracle) and (oracle.line, name) not in OTHER_BYTES
        ]
        assert bool(subjects) != (name in NOT_GENERATED | ONLY_IN_4_0), f"v{version}"
        for oracle, each in subjects:
            compared["versions of embedded schemas", oracle.jars.version] += 1
            for body in drawn.bodies(schema, version):
                each.assert_agrees(oracle, version, body, schema.codec(version).build(body))
                compared["drawn values of embedded schemas", oracle.jars.version] += 1


@pytest.mark.parametrize(("line", "name"), sorted(OTHER_BYTES))
def test_listed_differences_exist(oracles: list[Oracle], line: str, name: str) -> None:
    schema, _ = SCHEMAS[name]
    body = drawn.full(schema, 0)
    data = schema.codec(0).build(body)
    for oracle in oracles:
        if oracle.line == line:
            with pytest.raises((AssertionError, OracleError)):
                subject(oracle, name, 0).assert_agrees(oracle, 0, body, data)


def test_every_generated_message_is_declared(oracles: list[Oracle]) -> None:
    for oracle in oracles:
        generated = {
            name
            for name in oracle.classes()
            if not name.endswith(("RequestData", "ResponseData", "HeaderData"))
        }
        others = {name for (line, _, _), name in OTHER_CLASSES.items() if line == oracle.line}
        declared = SCHEMAS.keys() | {f"{name}Data" for name in SCHEMAS} | others
        assert generated - declared <= NOT_DECLARED
        for name, (schema, _) in SCHEMAS.items():
            known = subject(oracle, name, schema.versions.high).versions(oracle)
            assert set(known) <= set(schema.versions), f"{name} in Kafka {oracle.jars.version}"
