"""`kafkashark replay`: sends captured requests to another broker, and compares the responses."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES
from dissector.view.text.escape import escaped
from replay.options import pace_options, reading_options, security_options
from replay.options.pacing import STAGGER_S

if TYPE_CHECKING:
    from replay.options.target_settings import TargetSettings
    from replay.plan.plan import Plan
    from replay.report.report import Report

EXIT_FAILED, EXIT_ERROR = 1, 2

Text = str | None


def replay(
    context: typer.Context,
    captures: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE...",
            help="pcap or pcapng files, also compressed, in any order; - is standard input.",
            show_default=False,
        ),
        READS,
    ],
    to: Annotated[
        Text,
        typer.Option(
            metavar="HOST:PORT[,...]|mock",
            help="The target; mock is an embedded broker. Optional only with --dry-run.",
        ),
    ] = None,
    filter_text: Annotated[
        Text,
        typer.Option(
            "-Y", "--filter", metavar="FILTER", help="Replay only the requests that match."
        ),
    ] = None,
    speed: pace_options.Speed = "1",
    latency_limit: pace_options.LatencyLimit = None,
    rate: pace_options.Rate = 0.0,
    max_wait: pace_options.MaxWait = None,
    loop: pace_options.Loop = 1,
    scale: pace_options.Scale = 1,
    stagger: pace_options.Stagger = STAGGER_S,
    part: pace_options.PartOf = None,
    merge: pace_options.Merge = False,
    limit: pace_options.Limit = None,
    duration: pace_options.Duration = None,
    timeout: pace_options.Timeout = 30.0,
    ignore_throttle: Annotated[
        bool, typer.Option("--ignore-throttle", help="Ignore the throttle time in responses.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the requests, their destinations and replacements; send nothing.",
        ),
    ] = False,
    topic_map: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Name of a topic on the target. Repeatable."),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option(metavar="P", help="Prefix for names of topics, groups and transactional ids."),
    ] = "",
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create the topics that the target lacks.")
    ] = False,
    offsets: Annotated[
        str,
        typer.Option(
            metavar="kept|earliest|latest",
            help="Offset to send in place of one without a mapping.",
        ),
    ] = "kept",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="API",
            help="Send this API too, although it deletes or reconfigures. Repeatable.",
        ),
    ] = None,
    noise: Annotated[
        Text,
        typer.Option(
            metavar="FILE|learn",
            help="Differences to ignore, one pattern a line; learn replays twice at the reference "
            "and ignores what differs between the two.",
        ),
        READS,
    ] = None,
    reference: Annotated[
        Text,
        typer.Option(
            metavar="HOST:PORT[,...]|mock",
            help="Where --noise learn replays; by default at the target: then the patterns are "
            "printed, for a --noise FILE.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="A difference to ignore: Fetch.responses[*].partitions[*].records. Repeatable.",
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="differs|error|missing|unbalanced|latency:p99>2x|nothing",
            help="Criteria for exit status 1, separated by commas or repeated; by default "
            "differs,error,missing. latency:Produce:p99>2x limits one API, latency:max>500ms is "
            "absolute.",
        ),
    ] = None,
    accept: Annotated[
        Text,
        typer.Option(metavar="FILE", help="Accepted differences, which do not fail the replay."),
        READS,
    ] = None,
    write_accepted: Annotated[
        Text,
        typer.Option(metavar="FILE", help="Write the differences of this replay, for --accept."),
        WRITES,
    ] = None,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade",
            help="Accept the APIs that the target offers and changed defaults of settings; the "
            "report lists them in a section of their own.",
        ),
    ] = False,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Also write the report, as .txt, .ndjson, .xml (JUnit) or .html."
        ),
        WRITES,
    ] = None,
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
    ports: reading_options.Ports = None,
    keylogs: reading_options.Keylogs = None,
    decode_as: reading_options.DecodeAs = None,
    keep_copies: reading_options.KeepCopies = False,
    schemas: reading_options.Schemas = None,
    show_secrets: Annotated[
        bool,
        typer.Option("--show-secrets", help="Show passwords, tokens and salts instead of ***."),
    ] = False,
    show_payloads: Annotated[
        bool,
        typer.Option(
            "--show-payloads", help="Show keys, values and headers of records in the report."
        ),
    ] = False,
) -> int:
    """Replay captured requests at another broker, with its ids, and compare the responses."""
    from cluster.client.auth import Security
    from dissector.view.document.report_files import check_report_file, check_writable
    from replay.compare.ignore_rules import Noise
    from replay.options.difference_baseline import DifferenceBaseline
    from replay.options.option_values import AUTO, offset_policy_of, speed_of, topic_map_of
    from replay.options.pacing import Pace
    from replay.options.pass_criteria import Criteria, latency_limits
    from replay.options.play_options import PlayOptions
    from replay.options.target_settings import TargetSettings
    from replay.plan.plan import Plan
    from replay.report.merged_report import merge_reports

    for file in report or ():
        check_report_file(file)
    if merge:
        _refuse_others(context, "captures", "merge", "fail_on", "report")
        return _finish(merge_reports(captures, fail_on or ()), report or [])
    if to is None and not dry_run:
        raise UsageError("no target: use --to HOST:PORT or --to mock")
    if reference is not None and noise != LEARN:
        raise UsageError("--reference requires --noise learn")
    if (speed == AUTO) != bool(latency_limit):
        raise UsageError("--speed auto and --latency-limit, such as p99>50ms, need each other")
    if write_accepted is not None:
        check_writable(write_accepted)
    setting = TargetSettings(
        to=to or "",
        security=Security.read(
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
        ),
        topic_map=topic_map_of(topic_map or ()),
        prefix=prefix,
        offsets=offset_policy_of(offsets),
        create_topics=create_topics,
        play_options=PlayOptions(
            Pace(speed_of(speed), rate, max_wait),
            loop=loop,
            limit=limit,
            duration_s=duration,
            timeout_s=timeout,
            honours_throttle=not ignore_throttle,
            scale=scale,
            stagger_s=stagger,
        ),
        noise=Noise(ignore or ()) if noise in (None, LEARN) else Noise.read(noise, ignore or ()),
        show_secrets=show_secrets,
        criteria=Criteria.of(fail_on or (), DifferenceBaseline.of(accept, upgrade)),
        show_payloads=show_payloads,
        latency_limits=latency_limits(latency_limit or ()),
    )
    with Plan.of(
        *captures,
        filter=filter_text,
        allow=allow or (),
        ports=ports or (),
        keylogs=keylogs or (),
        decode_as=decode_as or (),
        part=part or "",
    ) as plan:
        for problem in plan.problems:
            _warn(problem)
        for topic in (each for each in setting.topic_map if each not in plan.topics):
            _warn(f"--topic-map: the capture shows no topic {topic!r}")
        if dry_run:
            return _dry_run(plan, setting)
        if noise == LEARN:
            patterns = _learn_patterns(plan, setting, reference)
            if reference is None:
                _print(patterns)
                return 0
            setting = _with_noise(setting, patterns)
        return _replay(plan, setting, report or [], write_accepted)


LEARN = "learn"


def _replay(
    plan: Plan, setting: TargetSettings, files: list[str], accepted_file: str | None
) -> int:
    """Replay, print the report and write it to files; return the exit status."""
    from dissector.view.document.report_files import write_lines
    from replay.cli_progress import ProgressLine
    from replay.options.difference_baseline import accepted_lines
    from replay.run.orchestrator import END_SIGNALS, run_replay
    from replay.run.speed_trials import find_speed

    play = find_speed if setting.latency_limits else run_replay
    with ProgressLine() as line:
        report = play(plan, setting, line.show)
    is_interrupted = report.ended in END_SIGNALS
    status = _finish(report, files, is_interrupted)
    if accepted_file is not None and report.is_begun:
        write_lines(accepted_lines(report.acceptable()), accepted_file)
    return 128 + END_SIGNALS[report.ended] if is_interrupted else status


def _refuse_others(context: typer.Context, *names: str) -> None:
    """Refuse all options but these, as reports are only merged."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is not None and source.name == "COMMANDLINE" and option.name not in names:
            raise UsageError(f"--merge replays nothing: leave out {option.opts[-1]}")


def _finish(report: Report, files: list[str], is_interrupted: bool = False) -> int:
    """Print a report and write it to files; return the exit status."""
    from replay.report.report_forms import text_lines, write_report

    if report.is_begun or is_interrupted or not report.ended:
        _print(text_lines(report))
    for file in files:
        write_report(report, file)
    for row in report.stale_rows():
        _warn(f"--accept: no longer found: {row['stale']}")
    if report.missing_parts:
        _warn(f"--merge: no report of part {', '.join(report.missing_parts)}")
    if report.ended and not is_interrupted:
        _warn(report.ended)
    if report.ended or report.missing_parts:
        return EXIT_ERROR
    return 0 if report.passed else EXIT_FAILED


def _learn_patterns(plan: Plan, setting: TargetSettings, reference: str | None) -> tuple[str, ...]:
    from dataclasses import replace

    from replay.cli_progress import ProgressLine
    from replay.run.orchestrator import learn_noise

    with ProgressLine() as line:
        return learn_noise(plan, replace(setting, to=reference or setting.to), line.show)


def _with_noise(setting: TargetSettings, patterns: Iterable[str]) -> TargetSettings:
    from dataclasses import replace

    from replay.compare.ignore_rules import Noise

    return replace(setting, noise=Noise([*setting.noise.patterns, *patterns]))


def _dry_run(plan: Plan, setting: TargetSettings) -> int:
    from replay.run.dry_run import dry_run_lines, target_lines

    _print(dry_run_lines(plan, setting))
    if plan.unreadable:
        _warn(plan.unreadable)
        return EXIT_ERROR
    if setting.to:
        _print(target_lines(plan, setting))
    return 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
    sys.stdout.flush()


def _warn(text: str) -> None:
    print("kafkashark:", escaped(text), file=sys.stderr)
