"""Checks captures: the functions behind `kafkashark conform` and `kafkashark.conform`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path

from conform.judge import Judge
from conform.probe import probes  # noqa: F401  (adds its rules to the registry)
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from conform.registry.verdict import Verdict
from conform.report import verdict_document  # noqa: F401  (adds the form of verdicts in notebooks)
from conform.report.baseline import apply_baseline, read_baseline
from conform.rule_selection import select_rules
from conform.rules import REGISTRY
from conform.script_rules import script_rules
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Window
from dissector.errors import UsageError
from dissector.protocol.context import using
from dissector.public import open_capture
from dissector.query.capture_sources import Sources
from dissector.query.filtered_capture import Capture as FilteredCapture


def conform(
    *captures: Sources | Capture,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    ports: Iterable[int] = (),
    keylogs: Iterable[str | Path] = (),
    baseline: str | Path | None = None,
    fail_on: Severity | str = Severity.ERROR,
    require_judged: int = 1,
) -> Verdict:
    """
    Check a capture against the rules of the Kafka protocol, as `kafkashark conform` does.

        verdict = conform("a.pcap", select="F,B01")
        for kind in verdict:  # equal findings, the worst kinds first
            print(kind.count, kind.first.rule.id, kind.first.packet, kind.first.found)
        assert verdict.passed, verdict

    Memory does not grow with the capture: of equal findings the first three are retained in full.

    Args:
        captures: Parts of one capture in any order, as for `open_capture` (names of files, file
            objects, bytes, lists), or one `Capture` of it, possibly with message definitions
            (`schemas`) or fed packets, but without a filter.
        select: Ids of rules (`B01`) or letters of families (`F`), also with commas; empty: all.
        ignore: The rules to omit, in the same form; the id of a rule takes precedence over its
            family.
        ports: Treat connections on these ports as Kafka, and ignore all others.
        keylogs: Files with the secrets of TLS connections (NSS key log, RFC 9850).
        baseline: A file of known findings, which do not fail; `--write-baseline` writes one.
        fail_on: The mildest severity that fails: `error`, `warning` or `note`.
        require_judged: The least number of judged rules for the verdict to pass.

    Returns:
        The verdict: `passed`, the kinds of findings, a tally for each rule.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
        UsageError: An unknown rule, severity or baseline, no capture, or a capture with a filter.
    """
    capture = _capture(captures, ports, keylogs)
    settings = capture.options.values
    notices: list[str] = []
    more = script_rules(settings.scripts if settings else (), notices.append)
    rules = select_rules_by_name(select, ignore, more)
    baseline_lines = None if baseline is None else read_baseline(Path(baseline))
    severity = _severity(fail_on)
    with using(capture.options.schemas):
        verdict = judge_windows(rules, capture, capture.windows())
    verdict.fail_on, verdict.require_judged = severity, require_judged
    verdict.problems += notices
    if baseline_lines is not None:
        apply_baseline(verdict, baseline_lines)
    return verdict


def select_rules_by_name(
    select: str | Iterable[str], ignore: str | Iterable[str], more: Iterable[Rule] = ()
) -> list[Rule]:
    """
    Return the rules that are selected and not ignored, in their order, including probes.

    Args:
        select: Ids of rules or letters of families; empty: all.
        ignore: The rules to omit.
        more: Rules of the user.

    Raises:
        UsageError: The rule is unknown.
    """
    names = ([each] if isinstance(each, str) else each for each in (select, ignore))
    return select_rules((*REGISTRY.values(), *more), *names)


def judge_windows(
    rules: Iterable[Rule],
    capture: Capture,
    windows: Iterable[Window],
    passes: Callable[[Exchange], bool] | None = None,
) -> Verdict:
    """
    Check the windows of a capture against the rules, without those for running brokers.

    Args:
        rules: The rules.
        capture: The capture.
        windows: All its windows, as read.
        passes: Chooses the exchanges whose violations are reported; None: all.
    """
    capture.read_in_step()  # what is known of a connection is asked for at each window
    judge = Judge((rule for rule in rules if rule.on != "live"), passes=passes)
    for window in windows:
        judge.judge_window(capture, window)
    return judge.finish(capture.reading)


def _capture(
    captures: tuple[Sources | Capture, ...],
    ports: Iterable[int],
    keylogs: Iterable[str | Path],
) -> Capture:
    if not captures:
        raise UsageError("conform needs a capture: the name of a file, or a Capture")
    paths = [each for each in captures if not isinstance(each, Capture)]
    if len(paths) == len(captures):
        return open_capture(*paths, ports=ports, keylogs=keylogs)
    first = captures[0]
    if len(captures) > 1 or not isinstance(first, Capture):
        raise UsageError("conform expects one Capture, or names of files; open_capture joins files")
    for name, values in (("ports", ports), ("keylogs", keylogs)):
        if isinstance(values, str | int | PathLike) or list(values):
            raise UsageError(f"a Capture has its own {name}: open_capture(..., {name}=[...])")
    if isinstance(first, FilteredCapture) and first.filter_text is not None:
        raise UsageError("conform checks all messages; give it a capture without a filter")
    return first


def _severity(name: str) -> Severity:
    if name not in tuple(Severity):
        raise UsageError(f"fail_on takes {', '.join(Severity)}, not {name!r}")
    return Severity(name)
