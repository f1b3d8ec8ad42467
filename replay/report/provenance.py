"""Where a report comes from: captures, options, target; of several reports as one."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.client.version_negotiation import client_version
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.view.text.value_text import time_text
from replay.model.plan_source import Source
from replay.model.row import Row

if TYPE_CHECKING:
    from replay.options.target_settings import TargetSettings
    from replay.plan.plan import Plan


MOCK_BROKER = "embedded broker, librdkafka's mock cluster"

_RELEASES = {
    1: "3.0 to 3.2",
    4: "3.3",
    8: "3.4",
    9: "3.5",
    12: "3.6",
    15: "3.7",
    20: "3.8",
    21: "3.9",
    22: "4.0",
    26: "4.1",
    28: "4.2",
    30: "4.3",
    31: "4.4 or later",
}
"""Lowest metadata.version of a release -> the release. Source: MetadataVersion.java (KIP-584)."""


@dataclass(slots=True)
class Provenance:
    """
    Metadata of a replay.

    Attributes:
        source: The input of the plan.
        first_ns: Capture time of the first request; None without requests.
        last_ns: Capture time of the last request; None without requests.
        clients: Software of the captured clients -> number of connections.
        options: The options of the replay, by their command-line names.
        target: Version, cluster id and brokers of the target; empty until `learn_target`.
        began_ns: Time when the replay began.
        parts: The part of the capture that is played, with its number of requests; or nothing.
    """

    source: Source
    first_ns: int | None
    last_ns: int | None
    clients: Counter[str]
    options: dict[str, Any]
    target: Row = field(default_factory=dict)
    began_ns: int = field(default_factory=time.time_ns)
    parts: list[Row] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Plan, settings: TargetSettings) -> Provenance:
        """Return the metadata of a plan and its options."""
        times_ns = plan.request_times_ns
        first_ns, last_ns = (times_ns[0], times_ns[-1]) if len(times_ns) else (None, None)
        names = [plan.clients.get(each, "unknown") for each in plan.connection_numbers]
        clients = Counter(names if settings.show_secrets else map(mask_texts, names))
        options = {**settings.options(), **plan.source.options}
        about = cls(plan.source, first_ns, last_ns, clients, options)
        if plan.part is not None:
            counts = {"steps": len(plan), "of_steps": plan.size}
            about.parts = [{"part": str(plan.part), "names": settings.prefix, **counts}]
        return about

    def learn_target(
        self, cluster_id: str | None, features: Mapping[str, int], brokers: int, is_mock: bool
    ) -> None:
        """Record the cluster id, the features and the number of brokers of the target."""
        self.target = {
            "version": MOCK_BROKER if is_mock else release_of(features),
            "metadata_version": features.get("metadata.version"),
            "cluster_id": cluster_id,
            "brokers": brokers,
        }

    def row(self) -> Row:
        """Return the metadata as a row of the report."""
        both = (self.first_ns, self.last_ns)
        first, last = (None if each is None else time_text(each) for each in both)
        return {
            "kafkashark": client_version(),
            "replayed_at": time_text(self.began_ns),
            "captures": [{"file": file, "bytes": size} for file, size in self.source.files],
            "first_request": first,
            "last_request": last,
            "clients": [
                {"software": name, "connections": count}
                for name, count in self.clients.most_common()
            ],
            "options": self.options,
            "target": self.target,
            "parts": self.parts,
            "reports": [],
        }


def release_of(features: Mapping[str, int]) -> str:
    """Return the Kafka release of brokers with these features; empty if unknown."""
    level = features.get("metadata.version", 0)
    at = bisect_right(list(_RELEASES), level)
    return f"Kafka {list(_RELEASES.values())[at - 1]}" if at else ""


class MergedOrigin:
    """
    The captures, options and targets of several reports.

    Args:
        reports: The name of each report, and its row of captures, options and target.

    Attributes:
        missing_parts: Parts of the capture without a report.
    """

    def __init__(self, reports: Sequence[tuple[str | Path, Row]]) -> None:
        self._files = [str(file) for file, _ in reports]
        self._rows = [row for _, row in reports]
        self._parts = _distinct(part for row in self._rows for part in row["parts"])
        self.missing_parts = _missing(self._parts)

    def row(self) -> Row:
        """Return them as a row of the report."""
        rows = self._rows
        first = [row["first_request"] for row in rows if row["first_request"]]
        last = [row["last_request"] for row in rows if row["last_request"]]
        return {
            "kafkashark": ", ".join(dict.fromkeys(row["kafkashark"] for row in rows)),
            "replayed_at": min(row["replayed_at"] for row in rows),
            "captures": _distinct(each for row in rows for each in row["captures"]),
            "first_request": min(first, default=None),
            "last_request": max(last, default=None),
            "clients": self._clients(),
            "options": self._options(),
            "target": max((row["target"] for row in rows), key=len),
            "parts": self._parts,
            "reports": self._files,
        }

    def _clients(self) -> list[Row]:
        """Return the connections of each client; replays of the same requests count once."""
        counts: Counter[str] = Counter()
        sources = _distinct((source_of(row), row["clients"]) for row in self._rows)
        for _, clients in sources:
            for each in clients:
                counts[each["software"]] += each["connections"]
        return [{"software": name, "connections": count} for name, count in counts.most_common()]

    def _options(self) -> Row:
        """Return the options; those that differ have a list of values."""
        found: Row = {}
        for row in self._rows:
            for name, value in row["options"].items():
                known = found.setdefault(name, value)
                if known != value:
                    found[name] = _distinct(_values(known) + _values(value))
        return found


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the distinct values in their order."""
    found: list[Any] = []
    for each in values:
        if each not in found:
            found.append(each)
    return found


def source_of(about: Row) -> tuple[list[Any], list[Any]]:
    """Return the captures of a report and the parts of them, whatever their names on the target."""
    return about["captures"], [(part["part"], part["of_steps"]) for part in about["parts"]]


def _missing(parts: Sequence[Row]) -> list[str]:
    """Return the parts `i/n` that are lacking beside others of the same replay."""
    found: dict[tuple[str, int, int], set[str]] = {}
    for each in parts:
        count = int(each["part"].partition("/")[2])
        found.setdefault((each["names"], each["of_steps"], count), set()).add(each["part"])
    return [
        part
        for (_, _, count), present in found.items()
        for part in (f"{number}/{count}" for number in range(1, count + 1))
        if part not in present
    ]
