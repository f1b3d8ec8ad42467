"""Errors of committed offsets, which a broker returns for each partition."""

from __future__ import annotations

from dissector.protocol.error_codes import error_name
from timeline.events.observed_exchange import ObservedExchange


def commit_errors(observed: ObservedExchange) -> list[str]:
    """Return the errors of partitions in a response to OffsetCommit, each once."""
    codes = {
        partition.error_code: None
        for topic in observed.response.topics or ()
        for partition in topic.partitions or ()
        if partition.error_code
    }
    return [error_name(code) for code in codes]
