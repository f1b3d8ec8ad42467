"""
Control records: records of brokers among the records of clients.

Their keys are a version and a type; their values are read by `dissector.protocol.embedded`.

Source: KIP-98 (ABORT, COMMIT), KIP-595 (LEADER_CHANGE), KIP-630 (snapshot header and footer),
KIP-853 (KRAFT_VERSION, KRAFT_VOTERS); Kafka's ControlRecordType.java.
"""

from __future__ import annotations

import struct

CONTROL_TYPES: dict[int, str] = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
_KEY = struct.Struct(">hh")


def control_type(key: bytes | None) -> str | None:
    """
    Return the name of a control record's type.

    `control type 9` for types without a name; None if the key is too short.
    """
    if key is None or len(key) < _KEY.size:
        return None
    _, number = _KEY.unpack_from(key)
    return CONTROL_TYPES.get(number, f"control type {number}")
