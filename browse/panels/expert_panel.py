"""The expert's list: what stands out in the capture, ranked, with its places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Static

from browse.panels.line_list import LineList
from browse.panels.panel import Panel
from dissector.view.text.escape import escaped
from findings.output.finding_texts import completeness, where, who
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import RANKS, Rank, RankedFinding

Action: TypeAlias = Literal["go", "filter", "explain", "copy"]

_GLYPHS = {Rank.BREAKS: "●", Rank.COSTS: "▲", Rank.DIFFERS: "▲", Rank.INFORMS: "○"}
_STYLES = {Rank.BREAKS: "bold red", Rank.COSTS: "yellow", Rank.DIFFERS: "yellow", Rank.INFORMS: ""}

_HINT = "Enter next place   = filter   E explain   y copy   1-5 ranks   Esc"

_DETAIL_LINES = 6


class ExpertChoice(NamedTuple):
    """
    What to do with a finding.

    Attributes:
        action: Go to its next place, filter, explain, or copy.
        finding: The finding.
    """

    action: Action
    finding: RankedFinding


class ExpertPanel(Panel[ExpertChoice]):
    """Findings, the worst first, and details of the chosen one; returns what to do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("equals_sign", "act('filter')", "Filter to its exchanges", key_display="="),
        Binding("E", "act('explain')", "Explain"),
        Binding("y", "act('copy')", "Copy"),
        Binding("1", "show_rank(0)", "All ranks", show=False),
        *(
            Binding(str(number), f"show_rank({number - 1})", f"Only what {rank}", show=False)
            for number, rank in enumerate(RANKS, 2)
        ),
    ]
    DEFAULT_CSS = f"""
    ExpertPanel .expert--ranks {{ height: 1; color: $text-muted; }}
    ExpertPanel .expert--detail {{
        height: {_DETAIL_LINES}; border-top: solid $primary; padding: 0 1;
    }}
    """

    def __init__(self, report: FindingReport, chosen: str = "") -> None:
        """
        Create the panel.

        Args:
            report: What stands out.
            chosen: Id of the finding that is chosen at first; may be empty.
        """
        super().__init__(f"What stands out: {report}", _HINT)
        self._report = report
        self._findings: Sequence[RankedFinding] = report.findings
        self._rank = 0
        self._list = LineList()
        self._ranks = Static("", classes="expert--ranks")
        self._detail = Static("", classes="expert--detail")
        ids = [each.id for each in self._findings]
        self._first = ids.index(chosen) if chosen in ids else 0

    def contents(self) -> Iterable[Widget]:
        """Return the ranks, the findings, and the details."""
        yield self._ranks
        yield self._list
        yield self._detail

    def on_mount(self) -> None:
        """Show the findings of all ranks, with the chosen one."""
        self._show()
        self._list.row = self._first
        self.call_after_refresh(self._list.action_move, 0)
        self._show_detail()
        self._list.focus()

    def action_show_rank(self, number: int) -> None:
        """Show findings of all ranks, or of one."""
        self._rank = number
        found = self._report.findings
        self._findings = [each for each in found if not number or each.rank is RANKS[number - 1]]
        self._list.row = 0
        self._show()
        self._show_detail()

    def action_act(self, action: Action) -> None:
        """Close the panel, and do something with the chosen finding."""
        if self._findings:
            self.dismiss(ExpertChoice(action, self._findings[self._list.row]))

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Go to the next place of the finding."""
        event.stop()
        self.action_act("go")

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show the details of the finding under the cursor."""
        event.stop()
        self._show_detail()

    def _show(self) -> None:
        names = ["all", *(f"{rank} ({self._report.count(rank)})" for rank in RANKS)]
        shown = Text("   ").join(
            Text(f"{number} {name}", "bold reverse" if number == self._rank + 1 else "")
            for number, name in enumerate(names, 1)
        )
        self._ranks.update(shown)
        count = len(self._findings)
        self._list.show(max(count, 1), self._line if count else lambda row: Text("nothing"))

    def _line(self, row: int) -> Text:
        finding = self._findings[row]
        return Text.assemble(
            (f"{_GLYPHS[finding.rank]} {finding.rank:<8} ", _STYLES[finding.rank]),
            escaped(finding.title),
            (f"   {escaped(who(finding))}", "dim"),
            no_wrap=True,
        )

    def _show_detail(self) -> None:
        if self._findings:
            lines = detail_lines(self._findings[self._list.row], self._report.headline.begin_ns)
        else:
            lines = iter([completeness(self._report.headline), *self._report.unjudged])
        self._detail.update(Text("\n".join(map(escaped, lines))))


def detail_lines(finding: RankedFinding, begin_ns: int) -> Iterator[str]:
    """Yield the details of a finding: what it is, where, what has the same cause, its filter."""
    yield from filter(None, (finding.detail, where(finding, begin_ns)))
    if finding.joined:
        yield "with it: " + "; ".join(each.title for each in finding.joined)
    if finding.filter:
        yield f"filter: {finding.filter}"


def explanation_lines(finding: RankedFinding, begin_ns: int) -> Iterator[str]:
    """Yield what a finding means: of its rule or advice, or of its source; and its details."""
    yield finding.title
    yield who(finding)
    yield from detail_lines(finding, begin_ns)
    for each in (finding, *finding.joined):
        yield ""
        yield from _meaning_lines(each)


def _meaning_lines(finding: RankedFinding) -> Iterator[str]:
    source, _, name = finding.id.partition(":")
    if source == "conformance":
        from conform.report.verdict_text import rule_lines
        from conform.rule_selection import rule_by_id

        yield from rule_lines(rule_by_id(name))
    elif source == "advice":
        from advise.public import advice_by_id
        from advise.report.advice_text import advice_lines

        yield from advice_lines(advice_by_id(name))
    else:
        from findings.sources import SOURCES

        if source in SOURCES:
            yield f"{SOURCES[source].title}: {SOURCES[source].meaning}"
        yield f"more: kafkashark {finding.more}"
