"""The key for the expert's list: what stands out, and what to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from browse.app.browse_base import run_in_thread
from browse.app.panel_keys import PanelKeys

if TYPE_CHECKING:
    from browse.listing.finding_pass import FindingPass
    from browse.panels.expert_panel import ExpertChoice
    from findings.registry.finding_report import FindingReport
    from findings.registry.ranked_finding import RankedFinding


class ExpertKeys(PanelKeys):
    """
    Actions of this key.

    Attributes:
        begins_with_news: Whether the list opens once the capture is read, unless a key comes first.
    """

    begins_with_news = False
    _findings: FindingPass | None = None
    _report: FindingReport | None = None
    _finding = ""
    _place = 0

    def on_key(self, event: events.Key) -> None:
        """Leave the screen to the user, who has begun."""
        self.begins_with_news = False

    def action_expert(self) -> None:
        """Find what stands out in a thread, and show it; a complete list is kept."""
        if self._findings is not None and not self._findings.is_done:
            return
        if self._report is not None and not self.session.access.is_live:
            self._show_report(self._report)
            return
        from browse.listing.finding_pass import FindingPass

        self._findings = FindingPass(self.session.access)
        self.show_notice("looking for what stands out")
        self.session.watch(self._findings)
        run_in_thread(self._findings.read)

    def take_in(self) -> None:
        """Collect the results of threads; show what stands out once it is found."""
        super().take_in()
        loading = self.session.loading
        if self.begins_with_news and loading.is_done and len(loading.parts):
            self.begins_with_news = False
            self.action_expert()
        found = self._findings
        if found is None or not found.is_done:
            return
        self._findings = None
        if found.report is not None:
            self._report = found.report
            self._report.findings = [*self._file_findings(), *found.report.findings]
            self._show_report(self._report)
        elif found.failure:
            self.show_notice(found.failure)

    def _file_findings(self) -> list[RankedFinding]:
        """Return the problems of files, and what ended the reading of the list."""
        from findings.registry.ranked_finding import Rank, RankedFinding

        texts = dict.fromkeys(self.session.problems())
        return [
            RankedFinding(f"file:{number}", Rank.BREAKS, text, 1, "the file can't be read whole")
            for number, text in enumerate(texts)
        ]

    def _show_report(self, report: FindingReport) -> None:
        from browse.panels.expert_panel import ExpertPanel

        self.push_screen(ExpertPanel(report, self._finding), self._use_finding)

    def _use_finding(self, choice: ExpertChoice | None) -> None:
        if choice is None or self._report is None:
            return
        action, finding = choice
        if finding.id != self._finding:
            self._finding, self._place = finding.id, 0
        match action:
            case "go":
                self._go_to_finding(finding)
            case "filter" if finding.filter:
                self.show_exchanges()
                self.apply_filter(finding.filter)
            case "explain":
                self._explain_finding(finding, self._report.headline.begin_ns)
            case "copy":
                from browse.panels.expert_panel import explanation_lines

                lines = explanation_lines(finding, self._report.headline.begin_ns)
                text = "\n".join(lines)
                self.copy_to_clipboard(text)
                self.show_notice(f"copied {len(text):,} characters")
            case _:
                self.show_notice("it has no exchanges")

    def _go_to_finding(self, finding: RankedFinding) -> None:
        """Go to the next place of a finding; after the last one to the first."""
        if not finding.packets:
            self.show_notice("it has no packets")
            return
        at = self._place % len(finding.packets)
        self._place = at + 1
        self.show_exchanges()
        self.go_to_packet(finding.packets[at])
        if not self.status.notice:
            self.show_notice(f"place {at + 1:,} of {len(finding.packets):,}: ! Enter goes on")

    def _explain_finding(self, finding: RankedFinding, begin_ns: int) -> None:
        import textwrap

        from browse.panels.expert_panel import explanation_lines
        from browse.panels.report_panel import ReportPanel
        from dissector.view.text.escape import escaped

        def lines(width: int) -> list[str]:
            return [
                part
                for line in explanation_lines(finding, begin_ns)
                for part in textwrap.wrap(escaped(line), width) or [""]
            ]

        self.push_screen(ReportPanel("Explanation", lines))
