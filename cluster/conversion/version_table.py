"""
Structural differences between the versions of an API, as data.

Source: the message definitions in Kafka's clients/src/main/resources/common/message.
"""

from __future__ import annotations

from typing import NamedTuple


class Fold(NamedTuple):
    """
    Fields of the body that became the only element of an array with room for more.

    Attributes:
        array: The array; its elements are structs, or scalars if there is only one field.
        fields: Name in the body -> name in the element; empty for the element itself.
    """

    array: str
    fields: dict[str, str]


FOLDS = {
    "OffsetFetch.request": Fold("groups", {"group_id": "group_id", "topics": "topics"}),
    "OffsetFetch.response": Fold("groups", {"topics": "topics", "error_code": "error_code"}),
    "FindCoordinator.request": Fold("coordinator_keys", {"key": ""}),
    "FindCoordinator.response": Fold(
        "coordinators",
        {name: name for name in ("node_id", "host", "port", "error_code", "error_message")},
    ),
    "LeaveGroup.request": Fold("members", {"member_id": "member_id"}),
    "AddPartitionsToTxn.response": Fold(
        "results_by_transaction", {"results_by_topic_v3_and_below": "topic_results"}
    ),
    "AddPartitionsToTxn.request": Fold(
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
"""
An array of names that became one of structs: old name, new name, field. DeleteTopics v6 (KIP-516).
"""

BATCHES_FROM = {"Produce": 3}
"""The first version that requires record batches of magic 2 (KIP-98)."""

EMPTY_MEANS_ALL = {"Metadata": ("topics", 0)}
"""A field with an empty array in this version for null in later ones."""

NO_LOSS = frozenset(
    {
        "Metadata.include_cluster_authorized_operations",
        "Metadata.include_topic_authorized_operations",
        "DescribeGroups.include_authorized_operations",
        "OffsetFetch.require_stable",
    }
)
"""
Fields that may be dropped with their value, although Kafka's definitions do not declare them
ignorable. The first three only add to the response. The last: clients drop it themselves for
brokers before 2.5, and accept the offsets unchanged (KIP-447).
"""
