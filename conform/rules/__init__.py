"""The rules by family; importing this package fills the registry."""

from __future__ import annotations

from conform.registry.rule import REGISTRY
from conform.rules.data import (
    fetch_rules,
    fetch_sessions,
    log_consistency,
    metadata_rules,
    offsets,
    produce_rules,
    producers,
    record_batches,
    record_contents,
    topic_ids,
    transactions,
    value_rules,
)
from conform.rules.groups import (
    classic_groups,
    consumer_groups,
    fencing,
    group_assignments,
    share_groups,
    streams_groups,
    unknown_members,
)
from conform.rules.wire import (
    duplicate_entries,
    encoding,
    error_code_rules,
    framing,
    quotas,
    requested_results,
    response_order,
    sasl_rules,
    telemetry,
    version_rules,
)

__all__ = [
    "REGISTRY",
    "classic_groups",
    "consumer_groups",
    "duplicate_entries",
    "encoding",
    "error_code_rules",
    "fencing",
    "fetch_rules",
    "fetch_sessions",
    "framing",
    "group_assignments",
    "log_consistency",
    "metadata_rules",
    "offsets",
    "produce_rules",
    "producers",
    "quotas",
    "record_batches",
    "record_contents",
    "requested_results",
    "response_order",
    "sasl_rules",
    "share_groups",
    "streams_groups",
    "telemetry",
    "topic_ids",
    "transactions",
    "unknown_members",
    "value_rules",
    "version_rules",
]
