"""Command-line options for speed, repeats and limits, and for copies and parts."""

from __future__ import annotations

from typing import ClassVar

from dissector.cli.parsing.declarations import Options, option
from replay.options.pacing import MAX_THROTTLE_S, STAGGER_S


class PaceOptions(Options):
    """How fast, how often and how much is replayed."""

    heading: ClassVar[str] = "Pace"

    speed: str = option(
        "--speed",
        default="1",
        metavar="N|max|auto",
        help="Speed relative to the capture; max sends as fast as responses arrive; auto finds the "
        "highest speed with latencies below --latency-limit.",
    )
    latency_limit: tuple[str, ...] = option(
        "--latency-limit",
        default=(),
        metavar="p99>50ms",
        help="Latency limits for --speed auto, in the form of --fail-on: Produce:p99>50ms limits "
        "one API, p99>2x is relative to the capture. Repeatable.",
    )
    rate: float = option(
        "--rate",
        default=0.0,
        metavar="N",
        least=0,
        help="Maximum number of requests per second.",
    )
    max_wait: float | None = option(
        "--max-wait",
        default=None,
        metavar="S",
        least=0,
        help="Shorten longer pauses between requests to this.",
    )
    loop: int = option(
        "--loop",
        default=1,
        metavar="N",
        least=1,
        help="Number of passes, each with separate names.",
    )
    scale: int = option(
        "--scale",
        default=1,
        metavar="N",
        least=1,
        help="Play N copies at the same time, each with separate names.",
    )
    stagger: float = option(
        "--stagger",
        default=STAGGER_S,
        metavar="S",
        least=0,
        help="Begin each copy of --scale S seconds after the last.",
    )
    part: str | None = option(
        "--part",
        default=None,
        metavar="I/N",
        help="Play part I of N of the connections: others play the rest at the same time.",
    )
    merge: bool = option(
        "--merge",
        default=False,
        help="Make one report of .ndjson reports, given in place of captures: of parts, or of "
        "replays at the same target.",
    )
    limit: int | None = option(
        "--limit", default=None, metavar="N", least=1, help="Maximum number of requests."
    )
    duration: float | None = option(
        "--duration",
        default=None,
        metavar="S",
        least=0,
        help="Maximum duration of the replay; with --speed auto, of each trial.",
    )
    max_throttle: float = option(
        "--max-throttle",
        default=MAX_THROTTLE_S,
        metavar="S",
        least=0,
        help="Shorten longer pauses for a throttle time of the target to this.",
    )
    timeout: float = option(
        "--timeout",
        default=30.0,
        metavar="S",
        least=0.001,
        help="Timeout for each response of the target.",
    )
