"""The trackers of each kind of event."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from timeline.groups.classic_groups import ClassicGroups
from timeline.groups.epoch_groups import EpochGroups
from timeline.trackers.cluster import ClusterChanges
from timeline.trackers.connections import Connections
from timeline.trackers.consumers import Consumers
from timeline.trackers.producers import Producers
from timeline.trackers.tracker import Tracker
from timeline.trackers.transactions import Transactions

_TRACKERS: dict[str, tuple[Callable[[], Tracker], ...]] = {
    "group": (ClassicGroups, EpochGroups),
    "producer": (Producers,),
    "transaction": (Transactions,),
    "consumer": (Consumers,),
    "connection": (Connections,),
    "cluster": (ClusterChanges,),
}


def trackers_of(kinds: Iterable[str]) -> list[Tracker]:
    """Return new trackers for some kinds of events."""
    return [create() for kind in kinds for create in _TRACKERS.get(kind, ())]
