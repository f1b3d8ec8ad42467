"""Finding of what stands out, for the expert's list."""

from __future__ import annotations

from browse.listing.capture_access import CaptureAccess, Pass
from findings.gather.capture_pass import CapturePass, Scope
from findings.public import finished_report
from findings.registry.finding_report import FindingReport
from findings.sources import SOURCES


class FindingPass(Pass):
    """
    A pass that finds what stands out in all exchanges.

    Attributes:
        report: The report; None before the end, and if the pass was cancelled.
    """

    def __init__(self, access: CaptureAccess) -> None:
        super().__init__(access.reopen(None, False), access.total_bytes)
        self._shows = access.show_secrets
        self.report: FindingReport | None = None

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        source = self.source
        found = CapturePass(source.capture, source.selection, Scope(show_secrets=self._shows))
        for window in self.windows():
            found.add(window)
            del window
        if not self.is_cancelled:
            sources = list(SOURCES.values())
            self.report = finished_report(found, sources, show_secrets=self._shows)
