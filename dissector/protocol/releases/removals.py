"""
Versions no longer supported by brokers of a release, with the release and the KIP of the removal.

Source: KIP-896 (removal of old API versions in 4.0), KIP-724 (message formats 0 and 1 in 4.0),
KIP-932 (versions 0 of the share group APIs were early access in 4.0).
"""

from __future__ import annotations

from functools import cache

from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.kafka_releases import OfferedRanges, VersionRange, ranges_of

_PRODUCE, _FETCH = 0, 1
_SHARE_GROUPS = range(76, 80)
_EARLY_ACCESS = "4.0", (0, 0)
"""The release with share groups as early access, which a setting enables, and their versions."""

_OFFERED_BUT_REFUSED = {_PRODUCE: ("4.0", 3)}
"""
API key -> first release in which brokers refuse versions below another one, although they offer
them.

Source: KAFKA-18659: librdkafka up to 2.8 disables compression where Produce v0 is not offered.
"""

_FIRST_WITH_RECORD_BATCHES = {_PRODUCE: 3, _FETCH: 4}
"""The first version of an API with records of format 2. Source: KIP-98, KIP-724."""

INTERNAL_APIS = frozenset(
    {*range(4, 8), 27, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, *range(82, 88)}
)
"""
APIs between brokers, controllers and coordinators, which are upgraded together.

Source: `listeners` in Kafka's message definitions, and the ACL that they demand (ClusterAction).
"""


REPLACEABLE_APIS = frozenset({23, 36, 55, 57, 60, 64, 71, 72, 74, 75, 80, 81})
"""
APIs that clients can do without, or that depend on the broker's settings.

OffsetForLeaderEpoch (KIP-320), SaslAuthenticate (raw tokens in its place, KIP-152), DescribeCluster
(Metadata in its place, KIP-700), telemetry (KIP-714), DescribeTopicPartitions (Metadata, KIP-966);
and APIs of KRaft brokers only, because the table has brokers with ZooKeeper.
"""


def check_release(release: str) -> str | None:
    """
    Return the name of a release; None if it is unknown.

    Args:
        release: Its name, `v4.0`, one of its patches (`4.0.1`), or `latest`.
    """
    if release == "latest":
        return RELEASES[-1]
    words = release.removeprefix("v").split(".")
    names = (".".join(words[:length]) for length in (3, 2))
    return next((name for name in names if name in RELEASES), None)


@cache
def spoken_by(release: str) -> dict[int, VersionRange]:
    """Return the versions that the brokers of a release answer, by API key."""
    spoken = dict(ranges_of(release))
    for key, (since, lowest) in _OFFERED_BUT_REFUSED.items():
        if RELEASES.index(release) >= RELEASES.index(since) and key in spoken:
            spoken[key] = lowest, spoken[key][1]
    if release == _EARLY_ACCESS[0]:
        spoken |= dict.fromkeys(_SHARE_GROUPS, _EARLY_ACCESS[1])
    return spoken


def answered_range(offered: OfferedRanges, api_key: int) -> VersionRange | None:
    """Return the versions of an API that a broker with such offers answers; None if none."""
    found = offered.get(api_key)
    since, lowest = _OFFERED_BUT_REFUSED.get(api_key, ("", 0))
    if found is None or not since:
        return found
    first_fetch = offered.get(_FETCH, (0, 0))[0]  # removed by the same release
    refuses = first_fetch >= ranges_of(since)[_FETCH][0]
    return (max(lowest, found[0]), found[1]) if refuses else found


def is_spoken(api_key: int, version: int, release: str) -> bool:
    """Return whether the brokers of a release answer a version."""
    lowest, highest = spoken_by(release).get(api_key, (0, -1))
    return lowest <= version <= highest


def removed_in(api_key: int, version: int, release: str) -> str | None:
    """Return the release, not after the given one, that removed a version; None if none did."""
    upto = RELEASES[: RELEASES.index(release) + 1]
    if is_spoken(api_key, version, release):
        return None
    last = next((each for each in reversed(upto) if is_spoken(api_key, version, each)), None)
    return None if last is None else upto[upto.index(last) + 1]


def kips_of(api_key: int, version: int) -> tuple[str, ...]:
    """Return the KIPs that removed a version of an API."""
    if api_key in _SHARE_GROUPS:
        return ("KIP-932",)
    formats = version < _FIRST_WITH_RECORD_BATCHES.get(api_key, 0)
    return ("KIP-896", "KIP-724") if formats else ("KIP-896",)
