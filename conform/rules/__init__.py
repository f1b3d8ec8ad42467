"""The rules, a file for each family; importing this package fills the registry."""

from __future__ import annotations

from conform.rule import REGISTRY
from conform.rules import (
    answers,
    assignments,
    batches,
    codes,
    consumer_groups,
    contents,
    encoding,
    fetch,
    fetch_sessions,
    framing,
    groups,
    lists,
    logs,
    metadata,
    offsets,
    produced,
    producers,
    quotas,
    sasl,
    transactions,
    versions,
)

__all__ = [
    "REGISTRY",
    "answers",
    "assignments",
    "batches",
    "codes",
    "consumer_groups",
    "contents",
    "encoding",
    "fetch",
    "fetch_sessions",
    "framing",
    "groups",
    "lists",
    "logs",
    "metadata",
    "offsets",
    "produced",
    "producers",
    "quotas",
    "sasl",
    "transactions",
    "versions",
]
