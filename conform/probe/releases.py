"""Which Kafka release a broker's version ranges match best, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from conform.probe.release_table import RANGES, RELEASES
from dissector.protocol.apis import api_name

Range = tuple[int, int]
Offer = Mapping[int, Range]
"""API key -> lowest and highest version."""

_FIRST_WITH_KRAFT, _FIRST_WITHOUT_ZOOKEEPER = "2.8", "4.0"
_OF_ZOOKEEPER = frozenset({4, 5, 6, 7, 56, 58, 67})
_OF_KRAFT = frozenset({55, 57, 64, 74, 75, 80, 81})
"""
APIs that brokers of releases which had both offer with the one and not with the other: LeaderAndIsr
to ControlledShutdown, AlterPartition, Envelope, AllocateProducerIds; DescribeQuorum,
UnregisterBroker, ListConfigResources, DescribeTopicPartitions, the voters (and UpdateFeatures).
"""

OPTIONAL = frozenset({68, 69, 71, 72, *range(76, 94)})
"""
APIs that settings or plugins switch on: groups of KIP-848, 932 and 1071 and their state, telemetry.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """
    An API whose range is not that of a release.

    Attributes:
        api_key: Of the API.
        offered: What the broker offers; None for nothing.
        expected: What the release offers; None for nothing.
        by_setting: Whether settings of a broker may explain it: it does not count then.
    """

    api_key: int
    offered: Range | None
    expected: Range | None
    by_setting: bool = False

    def __str__(self) -> str:
        why = " (settings decide)" if self.by_setting else ""
        offered, expected = _written(self.offered), _written(self.expected)
        return f"{api_name(self.api_key)}: offers {offered}, the release {expected}{why}"


@dataclass(frozen=True, slots=True)
class Match:
    """
    How a broker's ranges compare with the releases that they match best.

    Attributes:
        releases: The best, from old to new: several where their ranges are alike.
        differences: From the newest of them, in the order of the keys.
    """

    releases: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def exact(self) -> bool:
        """Whether nothing differs but what settings decide."""
        return all(each.by_setting for each in self.differences)


def best_match(offered: Offer) -> Match:
    """Compare what a broker offers with every release."""
    found = {release: differences(offered, release) for release in RELEASES}
    costs = {release: _cost(each) for release, each in found.items()}
    least = min(costs.values())
    best = tuple(release for release in RELEASES if costs[release] == least)
    return Match(best, found[best[-1]])


def differences(offered: Offer, release: str) -> tuple[Difference, ...]:
    """Return where an offer is not that of a release, in the order of the keys."""
    expected = ranges(release)
    return tuple(
        Difference(key, offered.get(key), expected.get(key), _by_setting(key, release, offered))
        for key in sorted({*offered, *expected})
        if offered.get(key) != expected.get(key)
    )


@cache
def ranges(release: str) -> dict[int, Range]:
    """Return what the brokers of a release offer."""
    position = RELEASES.index(release)
    found: dict[int, Range] = {}
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
    Weigh differences: first each version too many or too few, then each API that is missing.

    Whoever offers less is still most like what it copies.
    """
    counted = [each for each in found if not each.by_setting]
    missing = sum(each.offered is None for each in counted)
    return sum(_weight(each.offered, each.expected) for each in counted), missing


def _weight(offered: Range | None, expected: Range | None) -> int:
    if offered is None:
        return 0
    if expected is None:
        return 2 + offered[1] - offered[0]
    return abs(offered[0] - expected[0]) + abs(offered[1] - expected[1])


def _by_setting(key: int, release: str, offered: Offer) -> bool:
    """Tell whether a broker of the release may or may not offer an API, as it is set up."""
    if key in OPTIONAL:
        return key not in offered or key not in ranges(release)
    at = RELEASES.index(release)
    has_both = RELEASES.index(_FIRST_WITH_KRAFT) <= at < RELEASES.index(_FIRST_WITHOUT_ZOOKEEPER)
    of_form = key in _OF_ZOOKEEPER and key not in offered
    return has_both and (of_form or (key in _OF_KRAFT and key not in ranges(release)))


def _written(bounds: Range | None) -> str:
    if bounds is None:
        return "nothing"
    low, high = bounds
    if not 0 <= low <= high:
        return f"{low} to {high}, which is no range"
    return f"v{low}" if low == high else f"v{low}-{high}"
