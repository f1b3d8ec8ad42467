"""
Assignors' `user_data` in a subscription: the member's previous assignment and its generation.

`sticky` writes no version: v1 (KIP-341) is v0 followed by a generation. Java's `cooperative-sticky`
writes only the generation, as the subscription has the partitions; other clients write the same as
for `sticky`.

Source: Kafka, StickyAssignor.java and CooperativeStickyAssignor.java; librdkafka,
rdkafka_sticky_assignor.c.
"""

from __future__ import annotations

from dissector.protocol.embedded.reading import Embedded, read
from dissector.protocol.schema import Array, Int32, String, message

StickyUserData = message(None, "0-1")[
    Array("previous_assignment")[
        String("topic", entity="topicName"),
        Array("partitions", of=Int32),
    ],
    Int32("generation", "1+", default=-1),
]

CooperativeStickyUserData = message(None, "0")[Int32("generation"),]

_GENERATION_BYTES = 4


def read_user_data(path: str, data: bytes, assignor: str | None) -> Embedded | None:
    """
    Decode an assignor's `user_data`.

    Args:
        path: Path of the field.
        data: Its bytes.
        assignor: Name of the assignor, equal to the group's protocol.

    Returns:
        None if the assignor is unknown, or the bytes do not match completely.
    """
    if assignor == "cooperative-sticky" and len(data) == _GENERATION_BYTES:
        return read(path, "CooperativeStickyUserData", CooperativeStickyUserData, 0, data)
    if assignor not in ("sticky", "cooperative-sticky"):
        return None
    newest_first = sorted(StickyUserData.versions, reverse=True)
    tried = (read(path, "StickyUserData", StickyUserData, each, data) for each in newest_first)
    return next((each for each in tried if each.fits), None)
