"""The versions that brokers offer in ApiVersions; equal responses are evaluated once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from conform.evidence.bounded_memory import BoundedDict
from conform.evidence.observation import Observation
from conform.registry.kafka_releases import best_match
from dissector.protocol.headers import API_VERSIONS

_MAX_OFFERS = 100


@dataclass(frozen=True)
class OfferedVersions:
    """
    The offered versions of one response.

    Attributes:
        ranges: API key -> lowest and highest version.
        is_canonical: Whether each API occurs once and has a valid range, and ApiVersions is
            included.
    """

    ranges: dict[int, tuple[int, int]]
    is_canonical: bool

    @cached_property
    def release(self) -> str:
        """The release of Kafka whose brokers offer exactly these versions; empty: there is none."""
        return release_of(self.ranges)


def release_of(ranges: Mapping[int, tuple[int, int]]) -> str:
    """Return the release of Kafka whose brokers offer exactly these versions; empty: none."""
    match = best_match(ranges)
    if not ranges or not match.is_exact:
        return ""
    oldest, newest = match.releases[0], match.releases[-1]
    return f"Kafka {newest}" if oldest == newest else f"Kafka {oldest} to {newest}"


class _OfferCache(BoundedDict[tuple[int | None, bytes], OfferedVersions]):
    """Offered versions, by version and bytes of the response."""

    def __init__(self) -> None:
        super().__init__(_MAX_OFFERS)


def offered_versions_of(observation: Observation) -> OfferedVersions | None:
    """Return the versions in an ApiVersions response; None for an error or unreadable body."""
    told, response = observation.response_body, observation.response
    if told is None or response is None or told.error_code:
        return None
    offers = observation.capture_state.state(_OfferCache)
    key = response.api_version, response.frame[response.body_start :]
    found = offers.get(key)
    if found is None:
        keys = told.api_keys or ()
        ranges = {each.api_key: (each.min_version, each.max_version) for each in keys}
        has_ranges = all(0 <= least <= most for least, most in ranges.values())
        has_ranges = has_ranges and all(key >= 0 for key in ranges)
        is_plain = has_ranges and len(keys) == len(ranges) and API_VERSIONS in ranges
        found = offers[key] = OfferedVersions(ranges, is_plain)
    return found
