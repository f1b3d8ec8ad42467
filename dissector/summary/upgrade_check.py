"""
Incompatibilities with another release: clients at its brokers, or brokers with its clients.

A client that requests ApiVersions uses the highest version that it shares with the broker (KIP-511,
KIP-35). If that is below the broker's offer, it is the client's own highest version; if it equals
the broker's offer, the client may have newer ones, and breaks possibly. If the release lacks the
whole API, no choice remains.

Brokers and controllers are clients of each other, and are upgraded together: they are not judged.

Source: KIP-896: brokers and clients of 4.0 dropped the same versions. Client ids of fetchers and of
KRaft: `ReplicaFetcherManager`, `KafkaRaftManager` of Kafka.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dissector.protocol.apis import KEYS, NAMES
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.protocol.releases.kafka_releases import VersionRange, range_text, release_of
from dissector.protocol.releases.removals import (
    INTERNAL_APIS,
    REPLACEABLE_APIS,
    is_spoken,
    kips_of,
    removed_in,
    spoken_by,
)
from dissector.summary.software_guess import guess_software
from dissector.summary.statistics import Grouping
from dissector.summary.version_offers import Client, VersionOffers

USES = Grouping(("client", "software", "broker", "api", "version"), ("counts",))
"""The rows that an upgrade is judged by."""

_WRITE_TXN_MARKERS = 27
_BROKER_APIS = INTERNAL_APIS - {_WRITE_TXN_MARKERS}
"""APIs that only brokers and controllers use; tools abort transactions by the other one."""

_BROKER_CLIENT_IDS = re.compile(r"broker-\d+-fetcher-\d+|raft-client-\d+")
"""Client ids of fetchers of replicas, and of KRaft."""

BREAKS, NEGOTIATES, UNUSED, UNKNOWN = "breaks", "negotiates", "unused", "unknown"

CLIENT_COLUMNS = (
    *("client_id", "client", "software", "api", "api_version", "count"),
    *("spoken", "removed_in", "kips", "verdict"),
)
BROKER_COLUMNS = (
    *("broker", "software", "api", "offered", "needed", "count"),
    *("removed_in", "kips", "verdict"),
)


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """
    The result of a check.

    Attributes:
        rows: API versions that the release does not support, the worst first.
        subjects: Number of judged clients or brokers; a broker without its versions is not.
        broken: Number of those that break.
        internal: Number of brokers and controllers that were left out as clients.
    """

    rows: list[dict[str, Any]]
    subjects: int
    broken: int
    internal: int = 0


def check_clients(
    uses: Iterable[Mapping[str, Any]],
    offers: VersionOffers,
    release: str,
    *,
    internal: bool = False,
) -> UpgradeReport:
    """
    Return the clients of a capture that break with brokers of a release.

    Args:
        uses: Rows of `USES`.
        offers: The evidence of ApiVersions in the capture.
        release: One of `RELEASES`.
        internal: Whether brokers and controllers, as clients of others, are judged too.
    """
    uses = list(uses)
    left_out = set() if internal else _brokers_as_clients(uses)
    judged = [each for each in uses if _key(each) not in (None, *INTERNAL_APIS)]
    uses = [each for each in judged if _client(each) not in left_out]
    software = _software(uses)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for use in uses:
        verdict = _verdict(use, offers, release)
        if verdict is None:
            continue
        row = rows.setdefault(
            (_client(use), use["api"], use["api_version"]), _client_row(use, release)
        )
        row["software"] = software[_client(use)]
        row["count"] += use["count"]
        if row["verdict"] != BREAKS:  # one use with evidence is enough
            row["verdict"] = verdict
    clients = {_client(each) for each in uses}
    broken = {_client(row) for row in rows.values() if row["verdict"] == BREAKS}
    internal_clients = {_client(each) for each in judged} & left_out
    return UpgradeReport(_sorted(rows.values()), len(clients), len(broken), len(internal_clients))


def _brokers_as_clients(uses: Iterable[Mapping[str, Any]]) -> set[Client]:
    """Return clients that are brokers or controllers, by their client ids or APIs."""
    return {
        _client(each)
        for each in uses
        if _key(each) in _BROKER_APIS or _BROKER_CLIENT_IDS.fullmatch(each["client_id"] or "")
    }


def _client_row(use: Mapping[str, Any], release: str) -> dict[str, Any]:
    """Return the row of a client's API version, without its counts and verdict."""
    key, version = KEYS[use["api"]], use["api_version"]
    copied = {name: use[name] for name in ("client_id", "client", "api", "api_version")}
    spoken = range_text(spoken_by(release).get(key))
    row = {**copied, "count": 0, "spoken": spoken, **_removal(key, version, release)}
    return {name: row.get(name) for name in CLIENT_COLUMNS}


def _verdict(use: Mapping[str, Any], offers: VersionOffers, release: str) -> str | None:
    """Return whether a use of an API version breaks; None if the release supports it."""
    key, version = KEYS[use["api"]], use["api_version"]
    if key == API_VERSIONS or is_spoken(key, version, release):
        return None  # a broker answers any version of ApiVersions, KIP-511
    if _client(use) not in offers.requesters:
        return BREAKS
    offered = offers.offers.get(use["broker"], {}).get(key)
    if removed_in(key, version, release) is None:
        has_choice = key in spoken_by(release) or key in REPLACEABLE_APIS
    else:
        has_choice = offered is not None and offered[1] <= version
    return NEGOTIATES if has_choice else BREAKS


def check_brokers(
    uses: Iterable[Mapping[str, Any]], offers: VersionOffers, release: str
) -> UpgradeReport:
    """Return the brokers of a capture that are too old for clients of a release; see above."""
    counts: dict[tuple[str, int | None], int] = defaultdict(int)
    for each in uses:
        counts[each["broker"], _key(each)] += each["count"]
    rows = []
    releases: dict[tuple[Any, ...], str] = {}  # brokers offer the same few sets of versions
    for broker in sorted({broker for broker, _ in counts}):
        offered = offers.offers.get(broker)
        if offered is None:
            rows.append(_broker_row(broker, "", UNKNOWN))
            continue
        versions = tuple(sorted(offered.items()))
        if versions not in releases:
            releases[versions] = release_of(offered)
        for key, needed in spoken_by(release).items():
            if key in INTERNAL_APIS or key not in offered or _overlap(offered[key], needed):
                continue
            count = counts[broker, key]
            row = _broker_row(broker, releases[versions], BREAKS if count else UNUSED)
            row |= {
                "api": NAMES[key],
                "offered": range_text(offered[key]),
                "needed": range_text(needed),
                "count": count,
                **_removal(key, offered[key][1], release),
            }
            rows.append(row)
    brokers = {broker for broker, _ in counts if broker in offers.offers}
    broken = {row["broker"] for row in rows if row["verdict"] == BREAKS}
    return UpgradeReport(_sorted(rows), len(brokers), len(broken))


def _broker_row(broker: str, software: str, verdict: str) -> dict[str, Any]:
    row = dict.fromkeys(BROKER_COLUMNS)
    return {**row, "broker": broker, "software": software or None, "kips": [], "verdict": verdict}


def _removal(key: int, version: int, release: str) -> dict[str, Any]:
    since = removed_in(key, version, release)
    return {"removed_in": since, "kips": list(kips_of(key, version)) if since else []}


def _software(uses: Iterable[Mapping[str, Any]]) -> dict[Client, str | None]:
    """Return the software of each client: as reported on any connection, or by its client id."""
    known: dict[Client, set[str]] = defaultdict(set)
    for each in uses:
        words = (each["software_name"], each["software_version"])
        text = " ".join(word for word in words if word)
        known[_client(each)] |= {text} if text else set()
    return {
        client: ", ".join(sorted(names)) or guess_software(client[0])
        for client, names in known.items()
    }


def _client(row: Mapping[str, Any]) -> Client:
    return row["client_id"], row["client"]


def _key(row: Mapping[str, Any]) -> int | None:
    """Return the key of the API; None for orphans, tokens and APIs that Kafka does not have."""
    return KEYS.get(row["api"]) if row["api_version"] is not None else None


def _overlap(one: VersionRange, other: VersionRange) -> bool:
    return max(one[0], other[0]) <= min(one[1], other[1])


def _sorted(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["verdict"], -(row["count"] or 0)))


OLDEST, NEWEST = RELEASES[0], RELEASES[-1]
