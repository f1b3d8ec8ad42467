"""
Replays of captures that begin midway or have gaps.

`python -m tests.replay.incomplete_captures --to HOST:PORT CAPTURE...` cuts and thins captures,
replays each damaged one, and prints how many responses differ.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from replay import Pace, Plan, replay
from replay.model.outcome import Verdict
from replay.public import AS_FAST_AS_POSSIBLE
from replay.report.report import Report
from tools.record.raw_packets import walk

_FILE_BYTES, _PACKET_BYTES = 24, 16
_UNCHANGED = ("ApiVersions",)
"""What each target offers is its own."""


class Damage(NamedTuple):
    """
    Packets to remove from a capture.

    Attributes:
        cut: Percentage of packets to remove at the beginning.
        lost: Percentage of packets to remove elsewhere.
        seed: Seed of the random choice.
    """

    cut: float = 0
    lost: float = 0
    seed: int = 0

    def __str__(self) -> str:
        return f"-{self.cut:g} %" if not self.lost else f"loss {self.lost:g} % seed {self.seed}"


def damaged(capture: Path, damage: Damage, folder: Path) -> Path:
    """Write a classic pcap file, compressed or not, with packets missing; return the new one."""
    data = capture.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    packets = [
        data[each.start : each.start + _PACKET_BYTES + len(each.data)] for each in walk(data)
    ]
    chance = random.Random(damage.seed)
    kept = packets[int(len(packets) * damage.cut / 100) :]
    kept = [each for each in kept if chance.random() >= damage.lost / 100]
    path = (
        folder
        / f"{capture.name.partition('.')[0]}-{damage.cut:g}-{damage.lost:g}-{damage.seed}.pcap"
    )
    path.write_bytes(data[:_FILE_BYTES] + b"".join(kept))
    return path


class Shares(NamedTuple):
    """
    Result of the replay of a damaged capture.

    Attributes:
        answers: Compared responses.
        differ: Number of different ones.
        report: The full report.
    """

    answers: int
    differ: int
    report: Report

    @property
    def share(self) -> float:
        """The share of different responses, from 0 to 1."""
        return self.differ / max(self.answers, 1)


def played(
    capture: Path,
    target: str,
    prefix: str = "",
    timeout_s: float = 5,
    pace: Pace = AS_FAST_AS_POSSIBLE,
    allow: Sequence[str] = (),
) -> Shares:
    """Replay a capture and count what differs."""
    with Plan.of(capture, allow=allow) as plan:
        report = replay(
            plan,
            target,
            prefix=prefix,
            timeout_s=timeout_s,
            noise=_UNCHANGED,
            create_topics=True,
            pace=pace,
        )
        assert not report.ended, report.ended
        verdicts = report.verdicts
        answers = sum(verdicts.values()) - verdicts[Verdict.LEFT_OUT] - verdicts[Verdict.EXTRA]
        return Shares(answers, report.failing, report)


def main() -> int:
    """Damage and replay captures."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.replay.incomplete_captures", description=__doc__
    )
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--to", default="mock")
    parser.add_argument("--cut", type=float, default=30, help="percent")
    parser.add_argument("--lost", type=float, default=1, help="percent")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--whole", action="store_true", help="the undamaged capture too")
    parser.add_argument("--details", type=int, default=0, help="so many differences of each")
    parser.add_argument("--timeout", type=float, default=5)
    parser.add_argument("--speed", type=float, default=0, help="0 for as fast as possible")
    parser.add_argument("--allow", action="append", default=[], metavar="API")
    options = parser.parse_args()
    damages = [Damage()] if options.whole else []
    damages += [Damage(cut=options.cut)] if options.cut else []
    damages += [Damage(lost=options.lost, seed=seed) for seed in range(options.seeds)]
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number, (capture, damage) in enumerate(
            (capture, damage) for capture in options.captures for damage in damages
        ):
            path = damaged(capture, damage, Path(folder))
            prefix = f"d{number}-{random.randrange(1 << 30):x}-"
            try:
                pace = Pace(options.speed)
                found = played(path, options.to, prefix, options.timeout, pace, options.allow)
            except AssertionError as error:
                print(f"{capture.name:44} {damage!s:18} {error}", flush=True)
                continue
            worst = max(worst, found.share)
            report = found.report
            left = report.verdicts[Verdict.LEFT_OUT]
            shown = f"{found.differ:5} of {found.answers:5} differ ({found.share:6.1%})"
            incomplete = f"{report.verdicts[Verdict.INCOMPLETE]:3} incomplete"
            print(
                f"{capture.name:44} {damage!s:18} {shown}, {incomplete}, {left:4} left out, "
                f"{report.elapsed_ns / 1e9:6.1f} s",
                flush=True,
            )
            if options.details:
                _print_differences(report, options.details)
    print(f"worst: {worst:.1%}")
    return 0


def _print_differences(report: Report, most: int) -> None:
    for row in report.left_out_rows()[:most]:
        print("      left out:", row["count"], row["reason"])
    differences: Counter[str] = Counter()
    for row in report.differences():
        values = " -> ".join(str(row[name])[:60] for name in ("captured", "replayed"))
        differences[f"{row['verdict']} {row['api']} {row['path']}: {values}"] += 1
    for what, count in differences.most_common(most):
        print("     ", count, what)


if __name__ == "__main__":
    sys.exit(main())
