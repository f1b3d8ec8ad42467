"""The probes, by what they are about; importing this puts them into the registry."""

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
