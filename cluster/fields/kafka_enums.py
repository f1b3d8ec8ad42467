"""Numbered types of the Kafka protocol, and Kafka's internal topics."""

from __future__ import annotations

TOPIC, GROUP, TRANSACTION, BROKER, SHARE = "topic", "group", "transaction", "broker", "share"

COORDINATOR_TYPES = {0: GROUP, 1: TRANSACTION, 2: SHARE}
"""Key types of FindCoordinator."""

RESOURCE_TYPES = {2: TOPIC, 3: GROUP, 4: BROKER, 5: TRANSACTION, 8: BROKER, 32: GROUP}
"""Resource types of ACLs (3, 5) and of configurations (8, 32); 2 is the same in both."""


INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
"""Topics with the same name on every cluster."""
