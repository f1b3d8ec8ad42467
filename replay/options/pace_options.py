"""Command-line options for speed, repeats and limits, and for copies and parts."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Speed: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="N|max|auto",
        help="Speed relative to the capture; max sends as fast as responses arrive; auto finds the "
        "highest speed with latencies below --latency-limit.",
    ),
]
LatencyLimit: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="p99>50ms",
        help="Latency limits for --speed auto, in the form of --fail-on: Produce:p99>50ms limits "
        "one API, p99>2x is relative to the capture. Repeatable.",
    ),
]
Rate: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="N", min=0, show_default=False, help="Maximum number of requests per second."
    ),
]
MaxWait: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="S", min=0, help="Shorten longer pauses between requests to this."),
]
Loop: TypeAlias = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="Number of passes, each with separate names."),
]
Scale: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="Play N copies at the same time, each with separate names."
    ),
]
Stagger: TypeAlias = Annotated[
    float,
    typer.Option(metavar="S", min=0, help="Begin each copy of --scale S seconds after the last."),
]
PartOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="I/N",
        help="Play part I of N of the connections: others play the rest at the same time.",
    ),
]
Merge: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--merge",
        help="Make one report of .ndjson reports, given in place of captures: of parts, or of "
        "replays at the same target.",
    ),
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Maximum number of requests.")
]
Duration: TypeAlias = Annotated[
    float | None,
    typer.Option(
        metavar="S", min=0, help="Maximum duration of the replay; with --speed auto, of each trial."
    ),
]
Timeout: TypeAlias = Annotated[
    float,
    typer.Option(metavar="S", min=0.001, help="Timeout for each response of the target."),
]
