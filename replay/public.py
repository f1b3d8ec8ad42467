"""The function with which Python users begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from replay.accepted import Accepted, accepted_lines
from replay.auth import Security
from replay.criteria import Criteria
from replay.drive import drive
from replay.link import TIMEOUT_S
from replay.noise import Noise
from replay.offsets import Policy
from replay.pace import Pace
from replay.plan import Plan
from replay.report import Report
from replay.setting import MOCK, Setting
from replay.stage import Manner
from replay.written import check_writable, checked, write, write_lines

AS_FAST_AS_ANSWERED = Pace(speed=0)


def replay(
    plan: Plan,
    to: str = MOCK,
    *,
    pace: Pace = AS_FAST_AS_ANSWERED,
    loop: int = 1,
    limit: int | None = None,
    duration_s: float | None = None,
    timeout_s: float = TIMEOUT_S,
    honours_throttle: bool = True,
    security: Security = Security(),  # noqa: B008 (frozen)
    topic_map: Mapping[str, str] | None = None,
    prefix: str = "",
    offsets: Policy = "kept",
    create_topics: bool = False,
    noise: Noise | Iterable[str] = (),
    report_file: str | Path | None = None,
    show_secrets: bool = False,
    show_payloads: bool = False,
    fail_on: Iterable[str] = (),
    accept: str | Path | None = None,
    write_accepted: str | Path | None = None,
    upgrade: bool = False,
) -> Report:
    """
    Replay a plan at a target and return the report; it must not be called where a loop runs.

    A target that refuses or stalls does not raise: `Report.ended` says what it did, and
    `Report.passed` is false.

    Args:
        plan: What is played.
        to: `HOST:PORT[,...]`, or `mock`, the embedded broker.
        pace: How fast; by default as answers come.
        loop: How many times, each time under names of its own.
        limit: How many requests are sent at most.
        duration_s: After how many seconds it ends.
        timeout_s: How long the target may take.
        honours_throttle: Whether a connection pauses where the target asks for that.
        security: How connections are encrypted and authenticated.
        topic_map: Topics with names of their own on the target.
        prefix: Before the names of topics, groups and transactional ids.
        offsets: What is sent for an offset that nothing translates.
        create_topics: Whether topics that the target lacks are created.
        noise: Differences that do not count, or their patterns.
        report_file: The report is written there too, in the form that its name asks for.
        show_secrets: Whether secrets are compared and shown.
        show_payloads: Whether keys, values and headers of records are shown in the report.
        fail_on: What `Report.passed` depends on: `differs`, `error`, `missing`, `unbalanced`,
            `nothing`, limits as `latency:p99>2x`; the first three by default.
        accept: A file of differences that fail nothing.
        write_accepted: Such a file, written with the differences of this replay.
        upgrade: Whether the APIs that the target offers and changed defaults fail nothing either.

    Raises:
        ReplayError: The embedded broker can't be started.
        UsageError: What is asked for can't be had.
    """
    if report_file is not None:
        checked(report_file)
    if write_accepted is not None:
        check_writable(write_accepted)
    setting = Setting(
        to,
        security,
        topic_map or {},
        prefix,
        offsets,
        create_topics,
        Manner(pace, loop, limit, duration_s, timeout_s, honours_throttle),
        noise if isinstance(noise, Noise) else Noise(noise),
        show_secrets,
        Criteria.of(fail_on, Accepted.of(accept, upgrade)),
        show_payloads,
    )
    report = drive(plan, setting)
    if write_accepted is not None:
        write_lines(accepted_lines(report.acceptable()), write_accepted)
    if report_file is not None:
        write(report, report_file)
    return report
