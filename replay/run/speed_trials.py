"""Replays at one speed after the other, to find the highest one with latencies below a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from replay.compare.ignore_rules import Noise
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.pass_criteria import Limit
from replay.options.target_settings import TargetSettings
from replay.plan.plan import Plan
from replay.report.counters import Durations
from replay.report.report import Report
from replay.run.orchestrator import END_SIGNALS, ProgressCallback, replay_at, running_target
from replay.run.speed_search import MAX_TRIALS, SpeedSearch

TRIAL_S = 10.0
"""Maximum duration of a trial, unless `--duration` gives another."""

_NOT_MEASURED = "no response whose latency is limited"
_SATURATED = "more speed brings no more requests per second"


def find_speed(
    plan: Plan, settings: TargetSettings, watch: ProgressCallback | None = None
) -> Report:
    """
    Replay a plan at different speeds, each with separate names.

    Args:
        plan: The plan.
        settings: Target and options; `latency_limits` are what no latency may exceed.
        watch: As for `run_replay`.

    Returns:
        The report of the trial with the most requests per second among those that hold, or of the
        last trial if none does; with all trials.
    """
    options = settings.play_options
    all_passes = replace(options, loop=options.loop * MAX_TRIALS)
    with running_target(plan, replace(settings, play_options=all_passes)) as addresses:

        def play(speed: float, trial: int) -> Report:
            trial_options = replace(
                options,
                pace=replace(options.pace, speed=speed),
                first_pass=trial * options.passes,
                duration_s=TRIAL_S if options.duration_s is None else options.duration_s,
            )
            noise = Noise(settings.noise.patterns)  # counts ignored differences
            trial_settings = replace(settings, play_options=trial_options, noise=noise)
            return replay_at(plan, trial_settings, addresses, watch)

        return search_speed(settings.latency_limits, play)


def search_speed(limits: tuple[Limit, ...], play: Callable[[float, int], Report]) -> Report:
    """
    Find the highest speed with latencies within limits.

    Args:
        limits: The limits.
        play: Replays at a speed; its second argument is the number of the trial, from 0.
    """
    search, rows, chosen = SpeedSearch(), list[Row](), None
    best_rate = 0.0
    while (speed := search.next_speed()) is not None:
        report = play(speed, len(rows))
        row = _trial(report, speed, limits)
        rows.append({"trial": len(rows) + 1, **row})
        search.record(speed, row["holds"], row["requests_per_s"])
        if row["holds"] and row["requests_per_s"] > best_rate:
            best_rate, chosen = row["requests_per_s"], report
            report.found_speed = speed
        elif not best_rate:
            chosen = report
        if report.ended in END_SIGNALS:
            assert chosen is not None
            chosen.ended = report.ended
            break
        if row["why"] == _NOT_MEASURED:
            break  # lower speeds would send even less of the capture
    assert chosen is not None
    if search.is_saturated:
        rows[-1]["why"] = _SATURATED
    chosen.trials = rows
    return chosen


def _trial(report: Report, speed: float, limits: tuple[Limit, ...]) -> Row:
    """Return the row of a trial: whether the target sustained the speed, and if not, the reason."""
    measured = [row for limit in limits for row in _measured(report, limit)]
    exceeded = [row for row in measured if row["exceeds"]]
    missing = report.verdicts[Verdict.MISSING]
    worst = max(measured, key=_share_of_limit, default=None)
    why = report.ended
    if not why and missing:
        why = f"{missing:,} response{'s' * (missing != 1)} missing"
    if not why and exceeded:
        why = f"{len(exceeded):,} latenc{'y' if len(exceeded) == 1 else 'ies'} above the limit"
    if not why and not measured:
        why = _NOT_MEASURED
    seconds = report.played_ns / 1e9
    return {
        "speed": round(speed, 4),
        "requests_per_s": round(report.sent / seconds, 1) if seconds else 0.0,
        "sent": report.replayed,
        "holds": not why,
        "latency": "" if worst is None else _shown(worst),
        "why": why,
    }


def _measured(report: Report, limit: Limit) -> Iterator[Row]:
    """Yield the latency of each API; for unanswered requests, a lower bound."""
    for name, known in report.apis.items():
        replayed = Durations()
        for each in (known.replayed, report.waits.get(name, Durations())):
            if (histogram := each.histogram()) is not None:
                replayed.absorb(histogram)
        row = limit.measure(name, known.captured, replayed)
        if row is not None:
            yield row


def _share_of_limit(row: Row) -> float:
    return float(row["replayed_ms"] / max(row["limit_ms"], 1e-6))


def _shown(row: Row) -> str:
    return f"{row['api']} {row['replayed_ms']:.3f} ms of {row['limit_ms']:.3f} ms"
