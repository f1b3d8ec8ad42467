"""
The API versions that brokers offer in ApiVersions; equal responses are evaluated once.

The last offers of a connection and of a broker are kept, for the exchanges behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.releases.kafka_releases import release_of

_MAX_OFFERS = 100

Ranges: TypeAlias = dict[int, tuple[int, int]]
"""API key -> lowest and highest offered version."""


class ConnectionOffer:
    """The versions that the broker last offered on a connection, and the response's packet."""

    def __init__(self) -> None:
        self.ranges: Ranges | None = None
        self.packet = -1


class OffersByBroker(BoundedDict[str, tuple[int, Ranges]]):
    """The versions that each broker last offered on any connection, and the response's packet."""


@dataclass(frozen=True)
class OfferedVersions:
    """
    The offered versions of one response.

    Attributes:
        ranges: The versions.
        is_canonical: Whether each API occurs once and has a valid range, and ApiVersions is
            included.
    """

    ranges: Ranges
    is_canonical: bool

    @cached_property
    def release(self) -> str:
        """The Kafka release with exactly these versions; empty without one."""
        return release_of(self.ranges)


class _OfferCache(BoundedDict[tuple[int | None, bytes], OfferedVersions]):
    """Offered versions, by version and bytes of the response."""

    def __init__(self) -> None:
        super().__init__(_MAX_OFFERS)


def offered_versions_of(observation: Observation) -> OfferedVersions | None:
    """Return the versions in an ApiVersions response; None for an error or an unreliable body."""
    body, response = observation.response_body, observation.response
    if body is None or response is None or body.error_code:
        return None
    offers = observation.capture_state.state(_OfferCache)
    key = response.api_version, response.frame[response.body_start :]
    found = offers.get(key)
    if found is None:
        keys = body.api_keys or ()
        ranges = {each.api_key: (each.min_version, each.max_version) for each in keys}
        is_canonical = all(0 <= lowest <= highest for lowest, highest in ranges.values())
        is_canonical = is_canonical and all(api_key >= 0 for api_key in ranges)
        is_canonical = is_canonical and len(keys) == len(ranges) and API_VERSIONS in ranges
        found = offers[key] = OfferedVersions(ranges, is_canonical)
    return found
