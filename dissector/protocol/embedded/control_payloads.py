"""
Decode control records: transaction markers, and records of KRaft in the metadata log.

`dissector.protocol.records.control` reads only the type in a key; this module decodes the whole key
and value.

Source: Kafka, ControlRecordType.java, EndTransactionMarker.java and ControlRecordUtils.java (all
three read an unknown newer version as the newest they know); KIP-98, KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

from dissector.errors import Problem
from dissector.protocol.embedded.control_records import (
    ControlRecordKey,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from dissector.protocol.embedded.own_topics import DecodedRecord
from dissector.protocol.embedded.reading import Embedded, read, read_versioned
from dissector.protocol.records.control import control_type

_KRAFT = {
    "LEADER_CHANGE": ("LeaderChangeMessage", LeaderChangeMessage),
    "SNAPSHOT_HEADER": ("SnapshotHeaderRecord", SnapshotHeaderRecord),
    "SNAPSHOT_FOOTER": ("SnapshotFooterRecord", SnapshotFooterRecord),
    "KRAFT_VERSION": ("KRaftVersionRecord", KRaftVersionRecord),
    "KRAFT_VOTERS": ("VotersRecord", VotersRecord),
}


def decode_control(key: bytes | None, value: bytes | None) -> DecodedRecord:
    """Decode a control record; its type is its name: `COMMIT`, `LEADER_CHANGE`."""
    name = control_type(key)
    if key is None or name is None:
        problem = Problem("the key of a control record must have a version and a type", "key", 0)
        return DecodedRecord("control record", problems=[problem])
    record = DecodedRecord(name)
    record.key = read_versioned("key", "ControlRecordKey", ControlRecordKey, key, forward=True)
    if value is None:
        record.problems.append(Problem("the value is null", "value"))
    else:
        record.value = _value(name, value)
        if record.value is None:
            record.problems.append(Problem(f"{name} is not known", "key", 2))
    return record.with_embedded_problems()


def _value(name: str, value: bytes) -> Embedded | None:
    if name in ("ABORT", "COMMIT"):
        return read_versioned("value", "EndTxnMarker", EndTxnMarker, value, forward=True)
    if name not in _KRAFT:
        return None
    # The version is itself the first field, so the declared fields begin at 0.
    label, schema = _KRAFT[name]
    version = int.from_bytes(value[:2], "big", signed=True)
    return read("value", label, schema, version, value, forward=True)
