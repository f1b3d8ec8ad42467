"""A report of findings as lines of text that fit a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from dissector.view.text.colors import BOLD, PLAIN, RED, YELLOW
from dissector.view.text.escape import escaped
from findings.output.finding_texts import headline_lines, next_commands, where, who
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import Rank, RankedFinding

MIN_WIDTH, WIDTH = 40, 100
"""Minimum width of the text, and its width without a terminal."""

_INDENT = 9

_MOST_DETAIL = 240

_COLORS = {Rank.BREAKS: BOLD + RED, Rank.COSTS: YELLOW, Rank.DIFFERS: YELLOW, Rank.INFORMS: ""}


class FindingLines:
    """Writes reports as text."""

    def __init__(
        self,
        width: int | None = None,
        *,
        is_coloured: bool = False,
        time: Callable[[int], str] | None = None,
    ) -> None:
        """
        Begin.

        Args:
            width: Width of the terminal; None without one.
            is_coloured: Whether ranks have a colour.
            time: Makes the text of a time; by default seconds since the first packet.
        """
        self._time = time
        self._width = max(MIN_WIDTH, width or WIDTH)
        self._is_coloured = is_coloured

    def lines(
        self, report: FindingReport, captures: Sequence[str], most: int | None = None
    ) -> Iterator[str]:
        """
        Yield a report: what the capture is, what stands out, how to go on.

        Args:
            report: The report.
            captures: Names of the files.
            most: Maximum number of findings.
        """
        named = captures[0] if len(captures) == 1 else f"{len(captures)} captures"
        yield from self._wrapped(named, "")
        for line in headline_lines(report.headline):
            yield from self._wrapped(line, "  ")
        yield ""
        yield from self._wrapped(f"What stands out: {report}", "")
        for finding in report.findings[:most]:
            yield ""
            yield from self._finding(finding, report.headline.begin_ns)
        if most is not None and len(report) > most:
            yield ""
            yield f"... {len(report) - most:,} more: without -c, or with a larger one"
        for title, lines in (
            ("Not judged, or only in part", report.unjudged),
            ("Bugs in kafkashark, which left sources out", _faults(report)),
        ):
            if lines:
                yield ""
                yield title
                for line in lines:
                    yield from self._wrapped(line, "  ")
        yield ""
        yield "Go on"
        commands = list(next_commands(report, captures))
        widest = max(len(command) for command, _ in commands)
        for command, what in commands:
            line = f"  {escaped(command):<{widest}}  {what}"
            yield line if len(line) <= self._width else f"  {escaped(command)}"

    def _finding(self, finding: RankedFinding, begin_ns: int) -> Iterator[str]:
        rank = f"{finding.rank:<{_INDENT - 1}} "
        title = self._wrapped(finding.title, " " * _INDENT)
        first = next(title)
        color = _COLORS[finding.rank] if self._is_coloured else ""
        yield f"{color}{rank}{PLAIN if color else ''}{first[_INDENT:]}"
        yield from title
        indent = " " * _INDENT
        if finding.detail:
            yield from self._wrapped(_cut(finding.detail), indent)
        for line in filter(None, (who(finding), where(finding, begin_ns, self._time))):
            yield from self._wrapped(line, indent)
        for each in finding.joined:
            yield from self._wrapped(f"with it: {each.title} (kafkashark {each.more})", indent)
        if finding.filter:
            quoted = finding.filter.replace("'", "'\\''")
            yield from self._wrapped(f"-Y '{quoted}'", indent)
        if not finding.id.startswith("error:"):
            yield from self._wrapped(f"kafkashark {finding.more}", indent)

    def _wrapped(self, text: str, indent: str) -> Iterator[str]:
        return iter(
            textwrap.wrap(
                escaped(text),
                self._width,
                initial_indent=indent,
                subsequent_indent=indent,
                break_on_hyphens=False,
            )
        )


def _faults(report: FindingReport) -> list[str]:
    return [f"{source}: {bug}" for source, bug in report.faults.items()]


def _cut(text: str) -> str:
    """Return the begin of a long text, up to the end of a part of it."""
    if len(text) <= _MOST_DETAIL:
        return text
    begin = text[:_MOST_DETAIL]
    return f"{begin.rpartition('; ')[0] or begin} ..."
