"""
Deletions of groups, which also delete their offsets.

Source: KIP-229 (DeleteGroups).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dissector.protocol.error_codes import error_name
from timeline.events.event import Event
from timeline.events.observed_exchange import ObservedExchange
from timeline.trackers.tracker import Tracker
from timeline.trackers.transaction_state import client_of

DELETE_GROUPS = 42


class GroupDeletions(Tracker):
    """Reports deletions of groups of any type, and failed ones."""

    kind: ClassVar[str] = "group"
    apis: ClassVar[frozenset[int]] = frozenset((DELETE_GROUPS,))

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process a DeleteGroups."""
        if observed.response is None:
            return
        for each in observed.response.results or ():
            if each.error_code:
                error = error_name(each.error_code)
                text = f"{error}, for {client_of(observed)}"
                yield self.instant(observed, each.group_id, "not deleted", text, cause=error)
            else:
                text = f"with its offsets, by {client_of(observed)}"
                yield self.instant(observed, each.group_id, "deleted", text)
