"""Detectors for versions of clients."""

from __future__ import annotations

import re
from typing import Any

from advise.catalogue.version_catalogue import MIXED_VERSIONS, OLD_CLIENT, REMOVED_VERSIONS
from advise.detectors.subject_judge import API_NAMES, Judge, detects
from advise.evidence.tally import Total
from dissector.protocol.releases.kafka_release_table import RELEASES
from dissector.summary.upgrade_check import BREAKS, check_clients

_LIMITS = {
    "apache-kafka-java": "java",
    "librdkafka": "librdkafka",
    "kafka-python": "kafka_python",
    "aiokafka": "aiokafka",
}
"""Name in ApiVersions, and the threshold of its oldest release."""


def _release(name: str, version: str) -> tuple[str, str]:
    """Return library and release; bindings have librdkafka's in theirs: 2.16.1-rdkafka-2.16.0."""
    _, is_binding, release = version.partition("rdkafka-")
    return ("librdkafka", release) if is_binding else (name, version)


def _clients(judge: Judge) -> dict[int, Total]:
    evidence = judge.evidence
    return {row["client"]: row for row in evidence.totals(evidence.requests.calls, "client")}


@detects(OLD_CLIENT)
def old_client(judge: Judge) -> None:
    """The software that clients sent, compared with the oldest release that is not old."""
    for number, row in _clients(judge).items():
        sent = judge.evidence.software.get(number, set())
        for name, version in sent:
            library, release = _release(name or "", version or "")
            limit = _LIMITS.get(library)
            found = re.match(r"(\d+)\.(\d+)", release)
            if limit is None or found is None:
                judge.unjudged["software of unknown age"] += 1
                continue
            judge.judged += 1
            major, minor = (int(part) for part in found.groups())
            oldest = judge.limit(limit)
            if (major, minor) < (int(oldest), round((oldest - int(oldest)) * 10)):
                judge.add(
                    row,
                    judge.subject(number),
                    major + minor / 10,
                    limit,
                    "release",
                    f"{name} {version} is older than {oldest:g}",
                )
        if not sent:
            judge.unjudged["the client does not send its software"] += 1


@detects(MIXED_VERSIONS)
def mixed_versions(judge: Judge) -> None:
    """Releases of one library under one client id, on any address."""
    evidence = judge.evidence
    releases: dict[tuple[str, str], set[str]] = {}
    places: dict[tuple[str, str], tuple[int, Total]] = {}
    for number, row in _clients(judge).items():
        for name, version in evidence.software.get(number, set()):
            if name and version:
                key = evidence.client(number).client_id, name
                releases.setdefault(key, set()).add(version)
                places.setdefault(key, (number, row))
    for key, versions in releases.items():
        judge.judged += 1
        if len(versions) >= max(2, judge.limit("count")):
            number, row = places[key]
            judge.add(
                row,
                judge.subject(number),
                len(versions),
                "count",
                "versions",
                f"{key[1]} in {len(versions)} versions: {', '.join(sorted(versions))}",
            )


@detects(REMOVED_VERSIONS)
def removed_versions(judge: Judge) -> None:
    """What `upgrade --to` the newest release says of the clients."""
    evidence = judge.evidence
    uses: list[dict[str, Any]] = []
    numbers: dict[tuple[str | None, str], int] = {}
    calls = evidence.totals(evidence.requests.calls, "client", "broker", "api", "version")
    for row in calls:
        if row["api"] not in API_NAMES:
            continue
        client = evidence.client(row["client"])
        numbers[client.client_id or None, client.host] = row["client"]
        uses.append(
            {
                "client_id": client.client_id or None,
                "client": client.host,
                "software_name": None,
                "software_version": None,
                "broker": evidence.names.brokers.name(row["broker"]),
                "api": API_NAMES[row["api"]],
                "api_version": row["version"],
                "count": row["count"],
            }
        )
    release = RELEASES[-1]
    found = check_clients(uses, evidence.offers, release)
    judge.judged += found.subjects
    totals = _clients(judge)
    breaking: dict[int, list[dict[str, Any]]] = {}
    for use in found.rows:
        number = numbers.get((use["client_id"], use["client"]))
        if use["verdict"] == BREAKS and number is not None:
            breaking.setdefault(number, []).append(use)
    for number, rows in breaking.items():
        count = sum(use["count"] for use in rows)
        if count >= judge.limit("count"):
            names = sorted({f"{use['api']} v{use['api_version']}" for use in rows})
            shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
            judge.add(
                {**totals[number], "count": count},
                judge.subject(number),
                count,
                "count",
                "requests",
                f"{shown}: not in Kafka {release}",
                f"{count:,} requests fail after an upgrade to {release}.",
            )
