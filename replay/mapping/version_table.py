"""
What the same request looks like in versions that are built differently, as data.

Source: the cards of the APIs in Kafka's clients/src/main/resources/common/message.
"""

from __future__ import annotations

from typing import NamedTuple


class Fold(NamedTuple):
    """
    Fields of the body that became the one element of an array, which can hold more.

    Attributes:
        array: The array; its elements are structs, or plain values where there is one field only.
        fields: Name in the body -> name in the element; empty for the element itself.
    """

    array: str
    fields: dict[str, str]


FOLDS = {
    "OffsetFetch": Fold("groups", {"group_id": "group_id", "topics": "topics"}),
    "FindCoordinator": Fold("coordinator_keys", {"key": ""}),
    "LeaveGroup": Fold("members", {"member_id": "member_id"}),
    "AddPartitionsToTxn": Fold(
        "transactions",
        {
            "v3_and_below_transactional_id": "transactional_id",
            "v3_and_below_producer_id": "producer_id",
            "v3_and_below_producer_epoch": "producer_epoch",
            "v3_and_below_topics": "topics",
        },
    ),
}
"""OffsetFetch v8 (KIP-709), FindCoordinator v4 (KIP-699), LeaveGroup v3 (KIP-345), and
AddPartitionsToTxn v4 (KIP-890)."""

LISTS = {"DeleteTopics": ("topic_names", "topics", "name")}
"""An array of names that became one of structs: old, new, field. DeleteTopics v6 (KIP-516)."""

BATCHES_FROM = {"Produce": 3}
"""Versions from which records must come in batches of magic 2 (KIP-98)."""

EMPTY_MEANS_ALL = {"Metadata": ("topics", 0)}
"""Field whose empty array means in this version what null means later."""

NO_LOSS = frozenset(
    {
        "Metadata.include_cluster_authorized_operations",
        "Metadata.include_topic_authorized_operations",
        "DescribeGroups.include_authorized_operations",
        "OffsetFetch.require_stable",
    }
)
"""
Fields that may be lost with their value, though Kafka's definitions do not call them ignorable. The
first three: the answer says less, and nothing else is done. The last: consumers drop it themselves
for brokers before 2.5, which they take offsets from as they are (KIP-447).
"""
