"""Metadata of a replay: captures, options, target, and the version of kafkashark."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissector.view.values import time_text
from replay.negotiation import our_version
from replay.tallies import Row

if TYPE_CHECKING:
    from replay.plan import Plan
    from replay.setting import Setting

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


@dataclass(frozen=True, slots=True)
class Source:
    """
    The input of a plan.

    Attributes:
        files: Captures with their sizes in bytes; the size of standard input is None.
        filter: The display filter; empty without one.
        allow: The APIs of `--allow`.
        ports: The Kafka ports; if empty, connections are recognised by content.
    """

    files: tuple[tuple[str, int | None], ...] = ()
    filter: str = ""
    allow: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        captures: Sequence[str | Path],
        filter_text: str,
        allow: Iterable[str],
        ports: Iterable[int],
    ) -> Source:
        """Return the source for these options, with the sizes of the files."""
        files = tuple((str(capture), _size(Path(capture))) for capture in captures)
        return cls(files, filter_text, tuple(sorted(allow)), tuple(sorted(ports)))

    @property
    def options(self) -> dict[str, Any]:
        """The options that select from the captures, by their command-line names."""
        given = {
            "filter": self.filter,
            "allow": list(self.allow),
            "port": list(self.ports),
        }
        return {name: value for name, value in given.items() if value}


@dataclass(slots=True)
class About:
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
    """

    source: Source
    first_ns: int | None
    last_ns: int | None
    clients: Counter[str]
    options: dict[str, Any]
    target: Row = field(default_factory=dict)
    began_ns: int = field(default_factory=time.time_ns)

    @classmethod
    def of(cls, plan: Plan, setting: Setting) -> About:
        """Return the metadata of a plan and its options."""
        times_ns = plan.request_times_ns
        first_ns, last_ns = (times_ns[0], times_ns[-1]) if len(times_ns) else (None, None)
        clients = Counter(plan.clients.get(each, "unknown") for each in plan.connection_numbers)
        options = {**setting.options(), **plan.source.options}
        return cls(plan.source, first_ns, last_ns, clients, options)

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
            "kafkashark": our_version(),
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
        }


def release_of(features: Mapping[str, int]) -> str:
    """Return the Kafka release whose brokers support these features; empty if unknown."""
    level = features.get("metadata.version", 0)
    at = bisect_right(list(_RELEASES), level)
    return f"Kafka {list(_RELEASES.values())[at - 1]}" if at else ""


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
