"""`python -m tools.mutants ROOM`: prints the faults that the tests of a room do not notice."""

from __future__ import annotations

import argparse
import ast
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tools.mutants.forked_run import FaultyModule, import_libraries, is_killed
from tools.mutants.mutation_sites import faulty, sites_of

ROOT = Path(__file__).parents[2]
FAST = ("-m", "not (broker or long or spark)", "--all-cases")


def main() -> int:
    """Run the tests on some faults; return 1 if fewer than the required part are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("room", type=Path, help="folder or file of the code")
    parser.add_argument("--tests", nargs="+", help="folders or files of tests [tests/ROOM]")
    parser.add_argument("--count", type=int, default=30, help="number of faults [%(default)s]")
    parser.add_argument("--seed", default="1", help="chooses the faults [%(default)s]")
    parser.add_argument("--percent", type=int, default=90, help="required part [%(default)s]")
    options = parser.parse_args()
    tests = [*FAST, *(options.tests or [tests_of(options.room)])]
    import_libraries()
    start = time.monotonic()
    if is_killed(tests, None, 600):
        sys.exit(f"the tests fail without a fault: {' '.join(tests)}")
    seconds = 10 + 5 * (time.monotonic() - start)
    chosen = choice(options.room, options.count, options.seed)
    survivors = [text for file, number in chosen for text in survival(file, number, tests, seconds)]
    noticed = len(chosen) - len(survivors)
    print(f"{options.room}: {noticed} of {len(chosen)} faults noticed")
    return 1 if 100 * noticed < options.percent * len(chosen) else 0


def tests_of(room: Path) -> str:
    """Return the tests of a room, or of the nearest one around it."""
    around = (Path("tests", each) for each in (room, *room.parents))
    return str(next(each for each in around if each.is_dir()))


def choice(room: Path, count: int, seed: str) -> list[tuple[Path, int]]:
    """Return some of a room's places for faults, as (file, number), in the order of the text."""
    files = [room] if room.is_file() else sorted(room.glob("*.py"))
    everything = [
        (file, number)
        for file in files
        for number, _ in enumerate(sites_of(ast.parse(file.read_text(encoding="utf-8"))))
    ]
    return sorted(random.Random(seed).sample(everything, min(count, len(everything))))


def survival(file: Path, number: int, tests: list[str], seconds: float) -> Iterator[str]:
    """Yield the description of a fault if no test fails; print it."""
    source = file.read_text(encoding="utf-8")
    tree, site = faulty(source, number)
    if not is_killed(tests, FaultyModule(file, tree), seconds):
        line = source.splitlines()[site.line - 1].strip()
        text = f"{file}:{site.line}: {site.kind}: {line}"
        print(text, flush=True)
        yield text


if __name__ == "__main__":
    sys.exit(main())
