"""`kafkashark replay`: sends captured requests to another broker, and compares the responses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cluster.security_options import TargetOptions
from dissector.cli.declared.reading_options import (
    CaptureOptions,
    CopyOptions,
    DecodingOptions,
    PeriodOptions,
    ReportFileOptions,
    SecretOptions,
)
from dissector.cli.declared.value_options import ValueSourceOptions
from dissector.cli.parsing.declarations import option
from dissector.cli.presentation.completion import complete_api
from dissector.errors import UsageError
from dissector.file_roles import READS, WRITES
from dissector.values.source_options import PASSWORD_VARIABLE
from dissector.view.text.escape import escaped
from replay.options.pace_options import PaceOptions
from replay.options.record_options import RecordOptions

if TYPE_CHECKING:
    from replay.options.target_settings import TargetSettings
    from replay.plan.plan import Plan
    from replay.plan.schema_mapping import SchemaMapping
    from replay.report.report import Report

EXIT_FAILED, EXIT_ERROR = 1, 2

LEARN = "learn"


def _use_synthetic_records(are_wanted: bool) -> None:
    from dissector.request_log.synthetic_records import use_synthetic_records

    use_synthetic_records(are_wanted)


class ReplayOptions(
    RecordOptions,
    PeriodOptions,
    PaceOptions,
    TargetOptions,
    CaptureOptions,
    DecodingOptions,
    CopyOptions,
    SecretOptions,
    ReportFileOptions,
    ValueSourceOptions,
):
    """The options of `replay`."""

    to: str | None = option(
        "--to",
        default=None,
        metavar="HOST:PORT[,...]|mock",
        help="The target; mock is an embedded broker. Optional only with --dry-run.",
    )
    ignore_throttle: bool = option(
        "--ignore-throttle", default=False, help="Ignore the throttle time in responses."
    )
    synthetic_records: bool = option(
        "--synthetic-records",
        default=False,
        callback=_use_synthetic_records,
        help="Of request logs, which have only the sizes of records: produce made-up ones of "
        "these sizes.",
    )
    no_final_check: bool = option(
        "--no-final-check",
        default=False,
        help="Do not ask the target at the end for what the replay wrote: committed offsets, "
        "log ends, transactions, topics.",
    )
    dry_run: bool = option(
        "--dry-run",
        default=False,
        help="Print the requests, their destinations and replacements; send nothing.",
    )
    topic_map: tuple[str, ...] = option(
        "--topic-map",
        default=(),
        metavar="OLD=NEW",
        help="Name of a topic on the target. Repeatable.",
    )
    prefix_of_names: str = option(
        "--prefix",
        default="",
        metavar="P",
        help="Prefix for names of topics, groups and transactional ids.",
    )
    create_topics: bool = option(
        "--create-topics", default=False, help="Create the topics that the target lacks."
    )
    offsets: str = option(
        "--offsets",
        default="kept",
        metavar="kept|earliest|latest",
        choices=("kept", "earliest", "latest"),
        help="Offset to send in place of one without a mapping.",
    )
    allow: tuple[str, ...] = option(
        "--allow",
        default=(),
        metavar="API",
        complete=complete_api,
        help="Send this API too, although it deletes or reconfigures. Repeatable.",
    )
    noise: str | None = option(
        "--noise",
        default=None,
        metavar="FILE|learn",
        help="Differences to ignore, one pattern a line; learn replays twice at the reference "
        "and ignores what differs between the two.",
        role=READS,
    )
    reference: str | None = option(
        "--reference",
        default=None,
        metavar="HOST:PORT[,...]|mock",
        help="Where --noise learn replays; by default at the target: then the patterns are "
        "printed, for a --noise FILE.",
    )
    ignore: tuple[str, ...] = option(
        "--ignore",
        default=(),
        metavar="PATTERN",
        help="A difference to ignore: Fetch.responses[*].partitions[*].records. Repeatable.",
    )
    clients: tuple[str, ...] = option(
        "--for",
        default=(),
        metavar="java|librdkafka|franz-go|sarama",
        choices=("java", "librdkafka", "franz-go", "sarama"),
        help="The client whose view counts: differences that it does not see are equivalent. "
        "Repeatable; by default what none of the four sees.",
    )
    fail_on: tuple[str, ...] = option(
        "--fail-on",
        default=(),
        metavar="differs|error|missing|unsupported|unbalanced|latency:p99>2x|nothing",
        help="Criteria for exit status 1, separated by commas or repeated; by default "
        "differs,error,missing,unsupported. latency:Produce:p99>2x limits one API, "
        "latency:max>500ms is absolute.",
    )
    accept: str | None = option(
        "--accept",
        default=None,
        metavar="FILE",
        help="Accepted differences, which do not fail the replay.",
        role=READS,
    )
    target_profile: str | None = option(
        "--target-profile",
        default=None,
        metavar="NAME|FILE",
        help="Documented differences of the target, which fail nothing: confluent-cloud, "
        "event-hubs, msk-serverless, redpanda, warpstream, or a file of FIELD | SOURCE.",
        role=READS,
    )
    write_accepted: str | None = option(
        "--write-accepted",
        default=None,
        metavar="FILE",
        help="Write the differences of this replay, for --accept.",
        role=WRITES,
    )
    map_schemas: str | None = option(
        "--map-schemas",
        default=None,
        metavar="URL",
        help="The target's schema registry: ids of schemas in records become those that it has for "
        "the same schemas, which the capture has, or --values.",
    )
    map_schemas_user: str = option(
        "--map-schemas-user",
        default="",
        metavar="NAME[:PASSWORD]",
        help="Login at the registry of --map-schemas; without a password that of "
        f"${PASSWORD_VARIABLE}.",
    )
    register_schemas: bool = option(
        "--register-schemas",
        default=False,
        help="With --map-schemas: register the schemas that it lacks.",
    )
    upgrade: bool = option(
        "--upgrade",
        default=False,
        help="Accept the APIs that the target offers and changed defaults of settings; the "
        "report lists them in a section of their own.",
    )


def replay(given: ReplayOptions) -> int:
    """Replay captured requests at another broker, with its ids, and compare the responses."""
    from dissector.view.document.report_files import check_report_file, check_writable
    from replay.options.option_values import AUTO
    from replay.plan.plan import Plan
    from replay.report.merged_report import merge_reports

    for file in given.report:
        check_report_file(file)
    if given.merge:
        _refuse_others(given, "captures", "merge", "fail_on", "report")
        return _finish(merge_reports(given.captures, given.fail_on), given.report)
    if given.to is None and not given.dry_run:
        raise UsageError("no target: use --to HOST:PORT or --to mock")
    if given.reference is not None and given.noise != LEARN:
        raise UsageError("--reference requires --noise learn")
    if (given.speed == AUTO) != bool(given.latency_limit):
        raise UsageError("--speed auto and --latency-limit, such as p99>50ms, need each other")
    if given.write_accepted is not None:
        check_writable(given.write_accepted)
    setting = _settings(given)
    with Plan.of(
        *given.captures,
        filter=given.selected,
        allow=given.allow,
        ports=given.ports,
        keylogs=given.keylogs,
        decode_as=given.decode_as,
        part=given.part or "",
        schema_mapping=_schema_mapping(given, setting),
        scripts=given.scripts,
    ) as plan:
        for problem in plan.problems:
            _warn(problem)
        for topic in (each for each in setting.topic_map if each not in plan.topics):
            _warn(f"--topic-map: the capture shows no topic {topic!r}")
        if given.dry_run:
            return _dry_run(plan, setting)
        if given.noise == LEARN:
            patterns = _learn_patterns(plan, setting, given.reference)
            if given.reference is None:
                _print(patterns)
                return 0
            setting = _with_noise(setting, patterns)
        return _replay(plan, setting, given.report, given.write_accepted)


def _schema_mapping(given: ReplayOptions, setting: TargetSettings) -> SchemaMapping | None:
    from cluster.conversion.resource_names import NameMap
    from replay.plan.schema_mapping import SchemaMapping

    if given.map_schemas is None:
        for name in ("map_schemas_user", "register_schemas"):
            if getattr(given, name):
                raise UsageError(f"--{name.replace('_', '-')} needs --map-schemas")
        return None
    return SchemaMapping(
        given.map_schemas,
        given.map_schemas_user,
        given.register_schemas,
        given.value_settings,
        NameMap(setting.topic_map, setting.prefix).topic,
    )


def _settings(given: ReplayOptions) -> TargetSettings:
    """Return the settings of a replay that options describe."""
    from replay.compare.ignore_rules import Noise
    from replay.options.difference_baseline import DifferenceBaseline
    from replay.options.option_values import offset_policy_of, speed_of, topic_map_of
    from replay.options.pacing import Pace
    from replay.options.pass_criteria import Criteria, latency_limits
    from replay.options.play_options import PlayOptions
    from replay.options.target_profile import TargetProfile
    from replay.options.target_settings import MOCK, TargetSettings

    noise, ignore = given.noise, given.ignore
    profile = TargetProfile.of(given.target_profile)
    accepted = DifferenceBaseline.of(given.accept, given.upgrade, profile)
    return TargetSettings(
        to=given.to or "",
        security=given.security(),
        topic_map=topic_map_of(given.topic_map),
        prefix=given.prefix_of_names,
        offsets=offset_policy_of(given.offsets),
        create_topics=given.create_topics,
        play_options=PlayOptions(
            Pace(speed_of(given.speed), given.rate, given.max_wait),
            loop=given.loop,
            limit=given.limit,
            duration_s=given.duration,
            timeout_s=given.timeout,
            honours_throttle=not given.ignore_throttle,
            final_check=not given.no_final_check,
            scale=given.scale,
            stagger_s=given.stagger,
            max_throttle_s=given.max_throttle,
        ),
        noise=Noise(ignore) if noise in (None, LEARN) else Noise.read(noise, ignore),
        show_secrets=given.show_secrets,
        criteria=Criteria.of(given.fail_on, accepted, is_embedded=given.to == MOCK),
        show_payloads=given.shows_payloads,
        latency_limits=latency_limits(given.latency_limit),
        clients=given.clients,
    )


def _replay(
    plan: Plan, setting: TargetSettings, files: Sequence[str], accepted_file: str | None
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


def _refuse_others(given: ReplayOptions, *names: str) -> None:
    """Refuse all options but these, and those of settings, as reports are only merged."""
    for name, each in given.declared().items():
        if name not in names and each.setting != "shared" and getattr(given, name) != each.default:
            raise UsageError(f"--merge replays nothing: leave out {each.names[-1]}")


def _finish(report: Report, files: Sequence[str], is_interrupted: bool = False) -> int:
    """Print a report and write it to files; return the exit status."""
    from dissector.cli.output import terminal_width
    from dissector.view.text.wrapping import wrapped
    from replay.report.report import text_lines, write_report

    if report.is_begun or is_interrupted or not report.ended:
        width = terminal_width(None)
        _print(wrapped(text_lines(report, terminal_width=width), width))
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
