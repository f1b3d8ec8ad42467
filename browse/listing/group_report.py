"""Loading of the groups for a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from browse.listing.capture_access import CaptureAccess, Pass
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.summary.groups_reader import GroupsReader
from dissector.summary.lag_intervals import MOST_CHANGES, LagIntervals

_INTERVAL_S = 1.0
"""Of lags over time, unless there are too many changes."""


class GroupReport(Pass):
    """
    A pass that finds the groups of matching exchanges.

    Attributes:
        sections: Rows by section, as in `kafkashark groups`, also with `--interval`.
    """

    def __init__(self, access: CaptureAccess, text: str) -> None:
        super().__init__(access.reopen(text or None, False), access.total_bytes)
        self._shows = access.show_secrets
        self.sections: Mapping[str, Sequence[Mapping[str, Any]]] = {}

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        capture, chosen = self.source.capture, self.source.filter
        lags = LagIntervals(capture, _INTERVAL_S, chosen, most=MOST_CHANGES)
        reader = GroupsReader(capture, chosen, lags.count_members)
        for window in self.windows():
            reader.add(window)
            lags.add(window)
        if not self.is_cancelled:
            known = capture.logins.all
            sections = {**reader.sections(), **lags.sections()}
            self.sections = sections if self._shows else mask_texts(sections, known)
