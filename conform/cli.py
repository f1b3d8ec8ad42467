"""`kafkashark conform`: check a capture, or a running broker, against the rules of the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dissector.cli import options
from dissector.cli.live_options import accepts_live
from dissector.cli.output import write_lines
from dissector.cli.presentation.completion import complete_words
from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from replay.options import security_options

if TYPE_CHECKING:
    from conform.registry.rank import Severity
    from conform.registry.rule import Rule
    from conform.registry.verdict import Verdict
    from dissector.engine.reading.reader import Reading

FORMATS = ("text", "ndjson", "junit", "sarif", "html")
EXIT_VIOLATION, EXIT_TOO_FEW_JUDGED = 1, 2


def complete_rules(incomplete: str) -> list[str]:
    """Complete the last id of a list of rules."""
    from conform.rules import REGISTRY

    return complete_words(lambda: REGISTRY)(incomplete)


@accepts_live
def conform(
    captures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CAPTURE...",
            help="pcap or pcapng files, also compressed, in any order; - is standard input.",
            show_default=False,
        ),
        READS,
    ] = None,
    form: Annotated[str, options.format_option(FORMATS)] = "text",
    output: options.Output = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULES",
            autocompletion=complete_rules,
            help="Only these rules or families: F,B01. Repeatable.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULES",
            autocompletion=complete_rules,
            help="Omit these rules or families. Repeatable.",
        ),
    ] = None,
    list_rules: Annotated[bool, typer.Option("--list", help="Print the rules.")] = False,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            autocompletion=complete_rules,
            help="Print the documentation of a rule.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Known findings, which do not fail the check."),
        READS,
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the findings as a baseline; the exit status is 0."
        ),
        WRITES,
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="SEVERITY",
            autocompletion=complete_words(lambda: ("error", "warning", "note")),
            help="Mildest severity with exit status 1: error|warning|note.",
        ),
    ] = "error",
    require_judged: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Required number of judged rules; with fewer, the exit status is 2.",
        ),
    ] = 1,
    ports: options.Ports = None,
    max_frame_bytes: options.MaxFrame = options.MAX_FRAME,
    keylogs: options.KeyLogs = None,
    decode_as: options.DecodeAs = None,
    keep_copies: options.KeepCopies = False,
    schemas: options.Schemas = None,
    jobs: options.Jobs = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Check this running broker instead of a capture."),
    ] = None,
    allow_writes: Annotated[
        bool,
        typer.Option(
            "--allow-writes",
            help="With --target: create topics, groups and transactions, then delete them.",
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(metavar="S", min=0.1, help="Timeout of each response of the target."),
    ] = 10.0,
    tls: security_options.Tls = False,
    tls_ca: security_options.TlsCa = None,
    tls_certificate: security_options.TlsCertificate = None,
    tls_key: security_options.TlsKey = None,
    sasl: security_options.Sasl = "",
    sasl_user: security_options.SaslUser = "",
    sasl_secret: security_options.SaslSecret = None,
    also: security_options.Also = None,
    follow_advertised: security_options.FollowAdvertised = False,
    allow_plaintext_password: security_options.AllowPlaintextPassword = False,
) -> int:
    """Report violations of Kafka's protocol in a capture: rule, peer and place.

    A rule is not judged if the capture lacks the evidence for it. With --target, requests to a
    running broker check rules that no capture can show, and its versions are compared with the
    releases of Kafka. The exit status is 1 if an error was found (--fail-on), and 2 if no rule
    could be judged (--require-judged).

    Live, at the end: kafkashark conform -i eth0 -a duration:60 -w kept.pcapng
    """
    from conform.public import judge_windows, select_rules_by_name
    from conform.registry.rank import Severity
    from conform.report.verdict_text import rule_lines
    from conform.rule_selection import rule_by_id, sort_rules

    options.check_choice(form, FORMATS, "-T")
    options.check_choice(fail_on, tuple(Severity), "--fail-on")
    output_options = _OutputOptions(
        form, output, baseline, write_baseline, Severity(fail_on), require_judged
    )
    if explain is not None:
        explained = rule_by_id(explain)
        write_lines(_in_form(form, rule_lines(explained), [explained]), output)
        return 0
    rules = select_rules_by_name(select or (), ignore or ())
    if list_rules:
        listed = sort_rules(rules)
        write_lines(_in_form(form, _list_lines(listed), listed), output)
        return 0
    if target is not None:
        if captures:
            raise UsageError("--target checks a broker, and can't be combined with captures")
        from cluster.client.auth import Security
        from conform.probe.probe_command import probe_with_progress, release_lines

        security = Security.read(
            mechanism=sasl,
            username=sasl_user,
            secret_file=sasl_secret,
            tls=tls,
            authority_file=tls_ca,
            certificate_file=tls_certificate,
            key_file=tls_key,
            also=tuple(also or ()),
            follow_advertised=follow_advertised,
            allow_plaintext_password=allow_plaintext_password,
            tell=security_options.tell_once(),
        )
        outcome = probe_with_progress(target, rules, security, timeout, allow_writes, _print_error)
        return _write_verdict(
            outcome.verdict, target, output_options, None, release_lines(outcome.match, form)
        )
    if not captures:
        raise UsageError("nothing to check: CAPTURE..., --target HOST:PORT or --list is missing")
    source = options.source(captures, None, ports, max_frame_bytes, jobs, keylogs, decode_as)
    source.reports_unreadable = True
    verdict = judge_windows(rules, source.capture, source.each_window())
    subject = captures[0] if len(captures) == 1 else f"{len(captures)} captures"
    return _write_verdict(verdict, subject, output_options, source.capture.reading)


class _OutputOptions(NamedTuple):
    """The output options, by their names."""

    form: str
    output: str | None
    baseline: Path | None
    write_baseline: Path | None
    fail_on: Severity
    require_judged: int


def _write_verdict(
    verdict: Verdict,
    subject: str,
    output_options: _OutputOptions,
    reading: Reading | None,
    more_lines: Iterable[str] = (),
) -> int:
    """Write a verdict as the options require, then further lines; return the exit status."""
    from conform.report.baseline import apply_baseline, baseline_lines, read_baseline
    from conform.report.report_formats import FORMATTERS

    verdict.fail_on, verdict.require_judged = output_options.fail_on, output_options.require_judged
    if output_options.baseline is not None:
        for line in sorted(apply_baseline(verdict, read_baseline(output_options.baseline))):
            _print_error(f"{output_options.baseline}: no finding matches {line}")
    if output_options.write_baseline is not None:
        write_lines(baseline_lines(verdict), str(output_options.write_baseline))
    write_lines(
        chain(FORMATTERS[output_options.form](verdict, subject), more_lines), output_options.output
    )
    for fault in verdict.faults.values():
        _print_error(
            f"bug in kafkashark: {fault} ({fault.where}); the other rules were still applied"
        )
    if verdict.fails and output_options.write_baseline is None:
        return EXIT_VIOLATION
    if verdict.is_enough:
        return 0
    _print_error(f"{subject}: {_too_few_reason(verdict, reading)}")
    return EXIT_TOO_FEW_JUDGED


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


def _in_form(form: str, lines: Iterable[str], rules: Iterable[Rule]) -> Iterable[str]:
    """Return the lines about rules as text, or a row for each rule."""
    from conform.report.verdict_ndjson import rule_row

    if form not in ("text", "ndjson"):
        raise UsageError(f"--list and --explain print text or ndjson, not {form}")
    return lines if form == "text" else (json_text(rule_row(rule)) for rule in rules)


def _print_error(text: str) -> None:
    print("kafkashark:", escaped(text), file=sys.stderr)
