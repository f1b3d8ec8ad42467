"""The profile of a command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from benchmarks.profile import BEFORE, LOOPS, MODULES, THREADS, Place, Profile, lines, place

CAPTURE = Path(__file__).parents[2] / "captures" / "kafka4-three-nodes.pcap"

Result = TypeVar("Result")

MOST_S = 60.0
"""Processor time after which a thread should have been found at its work."""


def with_its_own_stack(work: Callable[[], Result]) -> Result:
    """Run work in a thread, as pytest itself may be running inside an import."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def found_in(module: str, source: str) -> Place:
    """Return the place found for a stack that ends in code of a module."""
    names = {"__name__": module, "sys": sys}
    exec(source, names)
    return with_its_own_stack(names["found"])


def test_a_stack_belongs_to_the_innermost_module_of_the_project() -> None:
    asks = "def found():\n return sys._getframe()"
    frame = found_in("dissector.engine.made", asks)
    assert place(frame) == Place("dissector.engine.made")
    assert place(None) == Place("")


@pytest.mark.parametrize(
    ("module", "function", "expected"),
    [
        ("dissector.kernel.call", "__call__", Place("dissector.engine.made", in_kernel=True)),
        ("dissector.kernel.call", "_extension", Place(LOOPS)),
        ("numpy.core", "where", Place("dissector.engine.made")),
        ("polars.series", "cast", Place("polars.series")),
    ],
)
def test_the_place_of_a_call(module: str, function: str, expected: Place) -> None:
    called = {"__name__": module, "sys": sys, "place": place}
    exec(f"def {function}():\n return place(sys._getframe())", called)
    caller = {"__name__": "dissector.engine.made", "called": called[function]}
    exec("def work():\n return called()", caller)
    assert with_its_own_stack(caller["work"]) == expected


def test_calls_during_an_import_count_as_loading() -> None:
    names = {"__name__": "dissector.made", "sys": sys, "place": place}
    exec(compile("found = place(sys._getframe())", "made.py", "exec"), names)
    assert names["found"] == Place(MODULES)


def test_threads_are_profiled_at_their_work() -> None:
    names = {"__name__": "dissector.made", "time": time}
    exec(f"def work(done):\n while not done() and time.thread_time() < {MOST_S}: pass", names)
    with Profile() as profile:
        is_found = lambda: profile.seconds[Place("dissector.made")] > 0  # noqa: E731
        with_its_own_stack(lambda: names["work"](is_found))
    assert profile.seconds[Place("dissector.made")] > 0
    assert profile.seconds[Place(BEFORE)] > 0
    assert profile.seconds[Place(THREADS)] >= 0


def test_the_table_is_sorted_by_time() -> None:
    seconds = Counter({Place("a"): 1.0, Place("b", in_kernel=True): 2.0, Place("b"): 0.98})
    seconds[Place("c")] = 0.02
    assert [" ".join(line.split()) for line in lines(seconds)] == [
        "CPU s share in kernels where",
        "2.980 74.5% 2.000 b",
        "1.000 25.0% 0.000 a",
        "0.020 0.5% 0.000 everything else",
        "4.000 100.0% 2.000 all",
    ]


def test_a_profiled_command_has_the_same_result(tmp_path: Path) -> None:
    output = tmp_path / "pairs.ndjson"
    command = [sys.executable, "-m", "benchmarks.profile", "pairs", str(CAPTURE)]
    done = subprocess.run(
        [*command, "-T", "ndjson", "-o", str(output)], capture_output=True, text=True, check=True
    )
    assert output.read_text().count("\n") > 100
    assert MODULES in done.stderr
    assert done.stderr.splitlines()[-1].endswith("all")
