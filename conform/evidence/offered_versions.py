"""The versions that brokers offer in ApiVersions; equal responses are evaluated once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from conform.evidence.bounded_memory import Newest
from conform.evidence.observation import Turn
from conform.registry.kafka_releases import best_match
from dissector.protocol.headers import API_VERSIONS

_MOST_OFFERS = 100


@dataclass(frozen=True)
class Offer:
    """
    The offered versions of one response.

    Attributes:
        ranges: API key -> lowest and highest version.
        is_plain: Whether each API occurs once and has a valid range, and ApiVersions is included.
    """

    ranges: dict[int, tuple[int, int]]
    is_plain: bool

    @cached_property
    def release(self) -> str:
        """The release of Kafka whose brokers offer exactly these versions; empty: there is none."""
        return release_of(self.ranges)


def release_of(ranges: Mapping[int, tuple[int, int]]) -> str:
    """Return the release of Kafka whose brokers offer exactly these versions; empty: none."""
    match = best_match(ranges)
    if not ranges or not match.exact:
        return ""
    oldest, newest = match.releases[0], match.releases[-1]
    return f"Kafka {newest}" if oldest == newest else f"Kafka {oldest} to {newest}"


class _Offers(Newest[tuple[int | None, bytes], Offer]):
    """Offered versions, by version and bytes of the response."""

    def __init__(self) -> None:
        super().__init__(_MOST_OFFERS)


def offer_of(turn: Turn) -> Offer | None:
    """Return the versions in an ApiVersions response; None for an error or unreadable body."""
    told, response = turn.told, turn.response
    if told is None or response is None or told.error_code:
        return None
    offers = turn.world.state(_Offers)
    key = response.api_version, response.frame[response.body_start :]
    found = offers.get(key)
    if found is None:
        keys = told.api_keys or ()
        ranges = {each.api_key: (each.min_version, each.max_version) for each in keys}
        has_ranges = all(0 <= least <= most for least, most in ranges.values())
        has_ranges = has_ranges and all(key >= 0 for key in ranges)
        is_plain = has_ranges and len(keys) == len(ranges) and API_VERSIONS in ranges
        found = offers[key] = Offer(ranges, is_plain)
    return found
