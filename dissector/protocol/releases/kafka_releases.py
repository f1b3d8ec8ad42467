"""Finds the Kafka release that a broker's version ranges match best, and the differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from dissector.protocol.apis import api_name
from dissector.protocol.releases.kafka_release_table import RANGES, RELEASES

VersionRange = tuple[int, int]
OfferedRanges = Mapping[int, VersionRange]
"""API key -> lowest and highest version."""

_FIRST_WITH_KRAFT, _FIRST_WITHOUT_ZOOKEEPER = "2.8", "4.0"
_ZOOKEEPER_APIS = frozenset({4, 5, 6, 7, 56, 58, 67})
_KRAFT_APIS = frozenset({55, 57, 64, 74, 75, 80, 81})
"""
APIs that brokers offer only with ZooKeeper or only with KRaft, in releases that support both:
LeaderAndIsr to ControlledShutdown, AlterPartition, Envelope, AllocateProducerIds; DescribeQuorum,
UpdateFeatures, UnregisterBroker, ListConfigResources, DescribeTopicPartitions, the voters.
"""

OPTIONAL_APIS = frozenset({68, 69, 71, 72, *range(76, 94)})
"""APIs that settings or plugins enable: KIP-848, 932 and 1071 groups and their state, telemetry."""


@dataclass(frozen=True, slots=True)
class Difference:
    """
    An API with a version range that differs from a release's.

    Attributes:
        api_key: Key of the API.
        offered: The range that the broker offers; None if it does not offer the API.
        expected: The range of the release; None if it does not have the API.
        is_by_setting: Whether broker settings may explain it, so that it does not count.
    """

    api_key: int
    offered: VersionRange | None
    expected: VersionRange | None
    is_by_setting: bool = False

    def __str__(self) -> str:
        note = " (depends on settings)" if self.is_by_setting else ""
        offered, expected = range_text(self.offered), range_text(self.expected)
        return f"{api_name(self.api_key)}: offers {offered}, the release {expected}{note}"


@dataclass(frozen=True, slots=True)
class ReleaseMatch:
    """
    Comparison of a broker's ranges with the releases that they match best.

    Attributes:
        releases: The best releases, from old to new; several if their ranges are equal.
        differences: Differences from the newest of them, by API key.
    """

    releases: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def is_exact(self) -> bool:
        """Whether settings may explain all differences."""
        return all(each.is_by_setting for each in self.differences)


def best_match(offered: OfferedRanges) -> ReleaseMatch:
    """Compare the offered versions with every release."""
    found = {release: differences(offered, release) for release in RELEASES}
    costs = {release: _cost(each) for release, each in found.items()}
    least = min(costs.values())
    best = tuple(release for release in RELEASES if costs[release] == least)
    return ReleaseMatch(best, found[best[-1]])


def release_of(offered: OfferedRanges) -> str:
    """Return the Kafka release of brokers with exactly these versions; empty if none."""
    return _release_of(frozenset(offered.items()))


@lru_cache(maxsize=100)  # brokers of a cluster offer the same
def _release_of(offered: frozenset[tuple[int, VersionRange]]) -> str:
    match = best_match(dict(offered))
    if not offered or not match.is_exact:
        return ""
    oldest, newest = match.releases[0], match.releases[-1]
    return f"Kafka {newest}" if oldest == newest else f"Kafka {oldest} to {newest}"


def differences(offered: OfferedRanges, release: str) -> tuple[Difference, ...]:
    """Return the differences between the offered versions and a release, by API key."""
    expected = ranges_of(release)
    return tuple(
        Difference(
            key, offered.get(key), expected.get(key), _may_be_by_setting(key, release, offered)
        )
        for key in sorted({*offered, *expected})
        if offered.get(key) != expected.get(key)
    )


@cache
def ranges_of(release: str) -> dict[int, VersionRange]:
    """Return the versions that the brokers of a release offer."""
    position = RELEASES.index(release)
    found: dict[int, VersionRange] = {}
    for key, changes in RANGES.items():
        for change in changes.split(", "):
            since, bounds = change.split(" ")
            if RELEASES.index(since) > position:
                break
            low, dash, high = bounds.partition("-")
            found.pop(key, None)
            if low and dash:
                found[key] = int(low), int(high)
    return found


def _cost(found: tuple[Difference, ...]) -> tuple[int, int]:
    """
    Weigh differences: first the number of differing versions, then the number of missing APIs.

    So a broker that implements only part of a release still matches that release best.
    """
    counted = [each for each in found if not each.is_by_setting]
    missing = sum(each.offered is None for each in counted)
    return sum(_range_distance(each.offered, each.expected) for each in counted), missing


def _range_distance(offered: VersionRange | None, expected: VersionRange | None) -> int:
    if offered is None:
        return 0
    if expected is None:
        return 2 + offered[1] - offered[0]
    return abs(offered[0] - expected[0]) + abs(offered[1] - expected[1])


def _may_be_by_setting(key: int, release: str, offered: OfferedRanges) -> bool:
    """Return whether it depends on settings if a broker of the release offers an API."""
    if key in OPTIONAL_APIS:
        return key not in offered or key not in ranges_of(release)
    position = RELEASES.index(release)
    has_both = (
        RELEASES.index(_FIRST_WITH_KRAFT) <= position < RELEASES.index(_FIRST_WITHOUT_ZOOKEEPER)
    )
    is_of_zookeeper = key in _ZOOKEEPER_APIS and key not in offered
    return has_both and (is_of_zookeeper or (key in _KRAFT_APIS and key not in ranges_of(release)))


def range_text(bounds: VersionRange | None) -> str:
    """Return a range of versions as text."""
    if bounds is None:
        return "nothing"
    low, high = bounds
    if not 0 <= low <= high:
        return f"{low} to {high}, an invalid range"
    return f"v{low}" if low == high else f"v{low}-{high}"
