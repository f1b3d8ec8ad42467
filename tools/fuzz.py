"""
`make fuzz`: runs property tests with new examples until a time limit.

Failing examples are printed in the form for a test (`@example`), and stored in `.hypothesis` for
the next run.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dissector.engine.reading.prefetch import cores

ROOT = Path(__file__).parents[1]
NO_TESTS = 5
"""Exit status of pytest without any tests."""


def main() -> int:
    """Run rounds over all files with property tests; return 1 if an example failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("paths", nargs="*", default=["tests"], help="files or folders of tests")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    files = property_tests(options.paths)
    failed: set[Path] = set()
    with ThreadPoolExecutor(cores()) as pool:
        while files and time.monotonic() < end:
            in_any_order = random.sample(files, len(files))
            for file, output in pool.map(lambda file: searched(file, end), in_any_order):
                if output and file not in failed:
                    print(output, flush=True)
                    failed.add(file)
    print(f"{len(failed)} of {len(files)} files of tests have examples that fail")
    return 1 if failed else 0


def property_tests(paths: list[str]) -> list[Path]:
    """Return the files with Hypothesis tests."""
    names = [Path(path) for path in paths]
    files = [file for name in names for file in ([name] if name.is_file() else name.rglob("*.py"))]
    return sorted(file for file in files if "@given(" in file.read_text(encoding="utf-8"))


def searched(file: Path, end: float) -> tuple[Path, str]:
    """Run the property tests of a file; return the output of pytest if one fails."""
    left = end - time.monotonic()
    if left <= 0:
        return file, ""
    options = ["-q", "-x", "-m", "hypothesis and not broker", "--hypothesis-profile=fuzz"]
    command = [sys.executable, "-m", "pytest", *options, str(file)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return file, ""
    return file, done.stdout + done.stderr if done.returncode not in (0, NO_TESTS) else ""


if __name__ == "__main__":
    sys.exit(main())
