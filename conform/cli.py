"""`kafkashark conform`: check a capture, or a running broker, against the rules of the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.security_options import TargetOptions
from conform.registry.rank import Severity
from dissector.cli.declared.check_options import CheckOptions, about_items, looks_for
from dissector.cli.declared.reading_options import (
    CopyOptions,
    LiveOptions,
    PeriodOptions,
    ReadingOptions,
)
from dissector.cli.parsing.declarations import option
from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES
from dissector.view.text.escape import escaped

if TYPE_CHECKING:
    from conform.registry.rule import Rule
    from conform.registry.verdict import Verdict
    from dissector.engine.reading.reader import Reading

EXIT_VIOLATION, EXIT_TOO_FEW_JUDGED = 1, 2


def _rule_ids() -> Iterable[str]:
    from conform.rules import REGISTRY

    return REGISTRY


@looks_for("rule", "F,B01", _rule_ids, items="rules or families")
class ConformOptions(
    PeriodOptions, CheckOptions, TargetOptions, ReadingOptions, CopyOptions, LiveOptions
):
    """The options of `conform`."""

    baseline: Path | None = option(
        "--baseline",
        default=None,
        metavar="FILE",
        help="Known findings, which do not fail the check.",
        role=READS,
    )
    write_baseline: Path | None = option(
        "--write-baseline",
        default=None,
        metavar="FILE",
        help="Write the findings as a baseline; the exit status is 0.",
        role=WRITES,
    )
    fail_on: str = option(
        "--fail-on",
        default=Severity.ERROR.value,
        metavar="SEVERITY",
        choices=tuple(each.value for each in Severity),
        help=f"Mildest severity with exit status 1: {'|'.join(Severity)}.",
    )
    require_judged: int = option(
        "--require-judged",
        default=1,
        metavar="N",
        least=1,
        help="Required number of judged rules; with fewer, the exit status is 2.",
    )
    target: str | None = option(
        "--target",
        default=None,
        metavar="HOST:PORT",
        help="Check this running broker instead of a capture.",
    )
    allow_writes: bool = option(
        "--allow-writes",
        default=False,
        help="With --target: create topics, groups and transactions, then delete them.",
    )
    timeout: float = option(
        "--timeout",
        default=10.0,
        metavar="S",
        least=0.1,
        help="Timeout of each response of the target.",
    )


def conform(given: ConformOptions) -> int:
    """Report violations of Kafka's protocol in a capture: rule, peer and place.

    A rule is not judged if the capture lacks the evidence for it. -Y, --since and --until choose
    the exchanges whose violations are reported; all are evidence. With --target, requests to a
    running broker check rules that no capture can show, and its versions are compared with the
    releases of Kafka. The exit status is 1 if an error was found (--fail-on), and 2 if no rule
    could be judged (--require-judged).

    Live, at the end: kafkashark conform -i eth0 -a duration:60 -w kept.pcapng
    """
    # All is loaded before a live capture begins: its first packets must not wait.
    from conform import public  # noqa: F401
    from dissector.cli import capture_source  # noqa: F401
    from dissector.cli.live_input import accepts_live

    return accepts_live(_conform)(given)


def _conform(given: ConformOptions) -> int:
    from conform.public import select_rules_by_name
    from conform.report.verdict_rows import rule_row
    from conform.report.verdict_text import rule_lines
    from conform.rule_selection import rule_by_id, sort_rules
    from conform.rules import REGISTRY
    from conform.script_rules import script_rules
    from dissector.cli.output import write_lines

    given = given.replace(form=given.chosen_form)
    notices: list[str] = []
    more = script_rules(given.scripts, notices.append)
    if given.explain is not None:
        explained = rule_by_id(given.explain, {**REGISTRY, **{each.id: each for each in more}})
        lines = about_items(given.form, rule_lines(explained), [rule_row(explained)])
        _write(lines, given)
        return 0
    rules = select_rules_by_name(given.select, given.ignore, more)
    if given.list_items:
        listed = sort_rules(rules)
        lines = about_items(given.form, _list_lines(listed), map(rule_row, listed))
        write_lines(lines, given.output)
        return 0
    if given.target is not None:
        return _probe(given, given.target, rules)
    if not given.captures:
        raise UsageError("nothing to check: CAPTURE..., --target HOST:PORT or --list is missing")
    from conform.public import judge_windows
    from dissector.cli.capture_source import source

    read = source(given, given.selected)
    read.reports_unreadable = True
    passes = None if read.filter is None else read.passes
    # A filter may test what is gleaned of exchanges.
    windows = read.each_window(gleaning=passes is not None)
    verdict = judge_windows(rules, read.capture, windows, passes)
    verdict.problems += notices
    captures = given.captures
    subject = captures[0] if len(captures) == 1 else f"{len(captures)} captures"
    return _write_verdict(verdict, subject, given, read.capture.reading)


def _probe(given: ConformOptions, target: str, rules: Sequence[Rule]) -> int:
    """Check a running broker."""
    from conform.probe.probe_command import probe_with_progress, release_lines

    if given.captures or given.selected is not None:
        raise UsageError("--target checks a broker, and can't be combined with captures or -Y")
    outcome = probe_with_progress(
        target, rules, given.security(), given.timeout, given.allow_writes, _print_error
    )
    lines = release_lines(outcome.match, given.form)
    return _write_verdict(outcome.verdict, target, given, None, lines)


def _write_verdict(
    verdict: Verdict,
    subject: str,
    given: ConformOptions,
    reading: Reading | None,
    more_lines: Iterable[str] = (),
) -> int:
    """Write a verdict as the options require, then further lines; return the exit status."""
    from conform.report.baseline import apply_baseline, baseline_lines, read_baseline
    from conform.report.report_formats import verdict_check
    from dissector.cli.output import write_lines
    from dissector.cli.presentation.table_options import has_color

    verdict.fail_on, verdict.require_judged = Severity(given.fail_on), given.require_judged
    if given.baseline is not None:
        for line in sorted(apply_baseline(verdict, read_baseline(given.baseline))):
            _print_error(f"{given.baseline}: no finding matches {line}")
    if given.write_baseline is not None:
        write_lines(baseline_lines(verdict), str(given.write_baseline))
    is_coloured = has_color(given, given.output)
    lines = verdict_check(verdict, subject).lines(given.form, is_coloured=is_coloured)
    _write(chain(lines, more_lines), given)
    for fault in verdict.faults.values():
        _print_error(
            f"bug in kafkashark: {fault} ({fault.where}); the other rules were still applied"
        )
    if verdict.fails and given.write_baseline is None:
        return EXIT_VIOLATION
    if verdict.is_enough:
        return 0
    _print_error(f"{subject}: {_too_few_reason(verdict, reading)}")
    return EXIT_TOO_FEW_JUDGED


def _write(lines: Iterable[str], given: ConformOptions) -> None:
    """Write lines; those of text are wrapped at the width of a terminal."""
    from dissector.cli.output import write_lines, write_text

    (write_text if given.form == "text" else write_lines)(lines, given.output)


def _too_few_reason(verdict: Verdict, reading: Reading | None) -> str:
    """Return the number of judged rules, and the reason why others were not."""
    from conform.nothing_judged import nothing_judged_reason

    count = verdict.rules_judged
    why = (
        f"fewer than {verdict.require_judged}" if count else nothing_judged_reason(verdict, reading)
    )
    return f"{count} of {len(verdict.rules)} rules judged: {why}"


def _list_lines(rules: Iterable[Rule]) -> Iterable[str]:
    return (f"{rule.id}  {rule.severity:<7}  {rule.rank:<18}  {rule.title}" for rule in rules)


def _print_error(text: str) -> None:
    print("kafkashark:", escaped(text), file=sys.stderr)
