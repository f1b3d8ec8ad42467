"""The probes by topic; importing this package registers them."""

from conform.probe.probes import (
    admin,
    closing,
    fetch,
    groups,
    hello,
    metadata,
    names,
    order,
    produce,
    sasl,
    tags,
    transactions,
    versions,
)

__all__ = [
    "admin",
    "closing",
    "fetch",
    "groups",
    "hello",
    "metadata",
    "names",
    "order",
    "produce",
    "sasl",
    "tags",
    "transactions",
    "versions",
]
