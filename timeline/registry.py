"""The trackers of each kind of event."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from timeline.connections.access_tracker import Access
from timeline.connections.close_tracker import ClosedConnections
from timeline.connections.connection_tracker import Connections
from timeline.connections.logged_waits import LoggedWaits
from timeline.connections.slow_phases import SlowPhases
from timeline.groups.classic_group_tracker import ClassicGroups
from timeline.groups.epoch_group_tracker import EpochGroups
from timeline.groups.group_deletions import GroupDeletions
from timeline.groups.lag_history import GroupLagHistory
from timeline.trackers.cluster_tracker import ClusterChanges
from timeline.trackers.consumer_tracker import Consumers
from timeline.trackers.producer_tracker import Producers
from timeline.trackers.record_tracker import FollowedWays
from timeline.trackers.tracker import Tracker
from timeline.trackers.transaction_tracker import Transactions

_TRACKERS: dict[str, tuple[Callable[[], Tracker], ...]] = {
    "group": (ClassicGroups, EpochGroups, GroupDeletions, GroupLagHistory),
    "producer": (Producers,),
    "transaction": (Transactions,),
    "consumer": (Consumers,),
    "connection": (Connections, Access, ClosedConnections, LoggedWaits, SlowPhases),
    "cluster": (ClusterChanges,),
    "record": (FollowedWays,),
}


def trackers_of(kinds: Iterable[str]) -> list[Tracker]:
    """Return new trackers for some kinds of events."""
    return [create() for kind in kinds for create in _TRACKERS.get(kind, ())]
