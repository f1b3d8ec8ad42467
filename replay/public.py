"""The replay function of the Python API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial, wraps
from pathlib import Path
from typing import ParamSpec

from cluster.client.auth import Security
from cluster.client.broker_connection import TIMEOUT_S
from dissector.view.document.report_files import check_report_file, check_writable, write_lines
from replay.compare.client_readings import checked_clients
from replay.compare.ignore_rules import Noise
from replay.mapping.offset_map import Policy
from replay.options.difference_baseline import DifferenceBaseline, accepted_lines
from replay.options.pacing import MAX_THROTTLE_S, STAGGER_S, Pace
from replay.options.pass_criteria import Criteria
from replay.options.pass_criteria import latency_limits as parse_latency_limits
from replay.options.play_options import PlayOptions
from replay.options.target_profile import TargetProfile
from replay.options.target_settings import MOCK, TargetSettings
from replay.plan.plan import Plan
from replay.report.report import Report, write_report
from replay.run.event_loop import run_in_thread
from replay.run.orchestrator import run_replay
from replay.run.speed_trials import find_speed

Arguments = ParamSpec("Arguments")

AS_FAST_AS_POSSIBLE = Pace(speed=0)


def replay(
    plan: Plan,
    to: str = MOCK,
    *,
    pace: Pace = AS_FAST_AS_POSSIBLE,
    loop: int = 1,
    limit: int | None = None,
    duration_s: float | None = None,
    timeout_s: float = TIMEOUT_S,
    honours_throttle: bool = True,
    max_throttle_s: float = MAX_THROTTLE_S,
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
    scale: int = 1,
    stagger_s: float = STAGGER_S,
    latency_limits: Iterable[str] = (),
    also: Iterable[str] = (),
    follow_advertised: bool = False,
    allow_plaintext_password: bool = False,
    clients: Iterable[str] = (),
    target_profile: str | Path | None = None,
    final_check: bool = True,
) -> Report:
    """
    Replay a plan at a target and return the report; it blocks, also inside an event loop.

    `await replay_async(...)` does not block; it takes the same arguments.

    A target that refuses or stalls raises no error: `Report.ended` gives the reason, and
    `Report.passed` is false.

    Args:
        plan: The plan to replay.
        to: `HOST:PORT[,...]`, or `mock`, the embedded broker.
        pace: The pacing; by default as fast as responses arrive.
        loop: Number of passes, each with separate names.
        limit: Maximum number of requests.
        duration_s: Maximum duration in seconds.
        timeout_s: Timeout for the target's responses, in seconds.
        honours_throttle: Whether a connection pauses for the throttle time in a response.
        max_throttle_s: Limit of these pauses in seconds.
        security: Encryption and authentication of connections.
        topic_map: Captured topic -> topic on the target.
        prefix: Put before the names of topics, groups and transactional ids.
        offsets: Offset to send in place of one without a mapping.
        create_topics: Whether to create topics that the target lacks.
        noise: Ignore rules, or their patterns.
        report_file: A file for the report, in the format of its suffix.
        show_secrets: Whether secrets are compared and shown.
        show_payloads: Whether the report shows keys, values and headers of records.
        fail_on: Criteria of `Report.passed`: `differs`, `error`, `missing`, `unsupported`,
            `unbalanced`, `nothing`, limits such as `latency:p99>2x`; the first four by default.
        accept: A file of accepted differences, which don't fail the replay.
        write_accepted: Write such a file with the differences of this replay.
        upgrade: Whether the offered APIs and changed defaults of the target are accepted too.
        scale: Number of copies played at the same time, each with separate names.
        stagger_s: Delay in seconds between the starts of consecutive copies.
        latency_limits: Limits such as `p99>50ms`: replays at one speed after the other, in place of
            that of `pace`, to find the highest one with latencies within these.
        also: Other hosts that the target may name as its brokers, `HOST` or `HOST:PORT`. These and
            the following are attributes of `security` too. Connections to others are logged first.
        follow_advertised: Whether the target may name any host.
        allow_plaintext_password: Whether to log in without TLS also at hosts that only the target
            names.
        clients: The clients whose view of responses counts: `java`, `librdkafka`, `franz-go`,
            `sarama`; by default all.
        target_profile: A shipped profile of the target by its name, or a file: documented
            differences, which don't fail the replay.
        final_check: Whether the target is asked at the end for what the replay wrote.

    Raises:
        ReplayError: The embedded broker can't be started.
        UsageError: An argument is invalid.
    """
    if report_file is not None:
        check_report_file(report_file)
    if write_accepted is not None:
        check_writable(write_accepted)
    accepted = DifferenceBaseline.of(accept, upgrade, TargetProfile.of(target_profile))
    setting = TargetSettings(
        to,
        security.with_hosts(also, follow_advertised, allow_plaintext_password),
        topic_map or {},
        prefix,
        offsets,
        create_topics,
        PlayOptions(
            pace,
            loop,
            limit,
            duration_s,
            timeout_s,
            honours_throttle,
            scale,
            stagger_s,
            final_check=final_check,
            max_throttle_s=max_throttle_s,
        ),
        noise if isinstance(noise, Noise) else Noise(noise),
        show_secrets,
        Criteria.of(fail_on, accepted, is_embedded=to == MOCK),
        show_payloads,
        parse_latency_limits(latency_limits),
        checked_clients(clients),
    )
    report = (find_speed if setting.latency_limits else run_replay)(plan, setting)
    if write_accepted is not None:
        write_lines(accepted_lines(report.acceptable()), write_accepted)
    if report_file is not None:
        write_report(report, report_file)
    return report


def _in_thread(function: Callable[Arguments, Report]) -> Callable[Arguments, Awaitable[Report]]:
    """Return a coroutine function with the same arguments."""

    @wraps(function)
    async def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Report:
        return await run_in_thread(partial(function, *args, **kwargs))

    call.__name__ = call.__qualname__ = "replay_async"
    call.__doc__ = (
        "Replay a plan as `replay` does, in a thread, so that the event loop goes on.\n\n"
        "Cancellation ends the replay. Arguments, result and errors are those of `replay`."
    )
    return call


replay_async = _in_thread(replay)
