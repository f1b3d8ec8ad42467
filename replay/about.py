"""What a replay was: captures, options, target, and the version of kafkashark."""

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
"""First metadata.version of a release -> the release. Source: MetadataVersion.java (KIP-584)."""


@dataclass(frozen=True, slots=True)
class Source:
    """
    What a plan is made of.

    Attributes:
        files: Captures with their sizes in bytes; None for standard input.
        filter: The display filter; empty for none.
        allow: APIs that are allowed.
        ports: Ports that are taken for Kafka; none for recognition by content.
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
        """Note what was asked for, and how large the files are."""
        files = tuple((str(capture), _size(Path(capture))) for capture in captures)
        return cls(files, filter_text, tuple(sorted(allow)), tuple(sorted(ports)))

    @property
    def options(self) -> dict[str, Any]:
        """The options that chose from the captures, as the command line has them."""
        given = {
            "filter": self.filter,
            "allow": list(self.allow),
            "port": list(self.ports),
        }
        return {name: value for name, value in given.items() if value}


@dataclass(slots=True)
class About:
    """
    What a replay was.

    Attributes:
        source: What was read.
        first_ns: When the first request was captured; None where there is none.
        last_ns: When the last one was.
        clients: Software of the captured clients -> how many connections.
        options: Of the replay, as the command line has them.
        target: What the target is, as far as it was asked.
        began_ns: When the replay began.
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
        """Note what is to be replayed, and how."""
        times_ns = plan.request_times_ns
        first_ns, last_ns = (times_ns[0], times_ns[-1]) if len(times_ns) else (None, None)
        clients = Counter(plan.clients.get(each, "unknown") for each in plan.connection_numbers)
        options = {**setting.options(), **plan.source.options}
        return cls(plan.source, first_ns, last_ns, clients, options)

    def learn_target(
        self, cluster_id: str | None, features: Mapping[str, int], brokers: int, is_mock: bool
    ) -> None:
        """Take over what the target says of itself."""
        self.target = {
            "version": MOCK_BROKER if is_mock else release_of(features),
            "metadata_version": features.get("metadata.version"),
            "cluster_id": cluster_id,
            "brokers": brokers,
        }

    def row(self) -> Row:
        """Return all of it."""
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
    """Return the release of Kafka whose brokers support these features; empty: not known."""
    level = features.get("metadata.version", 0)
    at = bisect_right(list(_RELEASES), level)
    return f"Kafka {list(_RELEASES.values())[at - 1]}" if at else ""


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
