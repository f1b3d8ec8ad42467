"""The probes by topic; importing this package registers them."""

from conform.probe.probes import (
    admin_probes,
    api_versions_probes,
    fetch_probes,
    group_probes,
    malformed_request_probes,
    metadata_probes,
    pipelining_probes,
    produce_probes,
    sasl_probes,
    transaction_probes,
    unknown_name_probes,
    unknown_tag_probes,
    version_probes,
)

__all__ = [
    "admin_probes",
    "api_versions_probes",
    "fetch_probes",
    "group_probes",
    "malformed_request_probes",
    "metadata_probes",
    "pipelining_probes",
    "produce_probes",
    "sasl_probes",
    "transaction_probes",
    "unknown_name_probes",
    "unknown_tag_probes",
    "version_probes",
]
