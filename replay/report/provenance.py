"""Metadata of a replay: captures, options, target, and the version of kafkashark."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
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
