"""
Profile of a command by module.

    python -m benchmarks.profile pairs large.pcap -T parquet -o pairs.parquet --jobs 1

runs the command and prints the processor time of each module, in its own code and in its compiled
kernels. Threads of libraries have a separate line.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import NamedTuple

INTERVAL_S = 0.0005
"""Sampling interval; processor time since the last sample counts for a thread's place."""

LEAST_SHARE = 0.01
"""Modules with a smaller share are merged into one line."""

BEFORE, MODULES, LOOPS = "start of Python", "loading of modules", "loading of compiled loops"
THREADS, REST = "libraries in their own threads", "everything else"

_KERNELS = "dissector.kernel.call"


class Place(NamedTuple):
    """Place of a thread: a module or a phase of the start, and whether it is in a kernel."""

    name: str
    in_kernel: bool = False


class Profile:
    """
    Samples all threads of this process from another thread, in a `with` block.

    Attributes:
        seconds: Processor time by place.
    """

    def __init__(self) -> None:
        self.seconds: Counter[Place] = Counter({Place(BEFORE): time.process_time()})
        self._clocks: dict[int, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="profile", daemon=True)

    def __enter__(self) -> Profile:
        self._interval_s = sys.getswitchinterval()
        sys.setswitchinterval(INTERVAL_S)
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        sys.setswitchinterval(self._interval_s)
        unseen = time.process_time() - self._own_s - self.seconds.total()
        self.seconds[Place(THREADS)] += max(unseen, 0.0)

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            self._look()
        self._look()
        self._own_s = time.thread_time()

    def _look(self) -> None:
        """Add the processor time of each thread since the last sample to its place."""
        clocks = {}
        for number, frame in sys._current_frames().items():
            if number == self._thread.ident:
                continue
            # The thread can't end while this one holds the interpreter lock.
            clocks[number] = time.clock_gettime(time.pthread_getcpuclockid(number))
            # A thread just returned from a library may have done other work before.
            spent_s = clocks[number] - self._clocks.get(number, clocks[number])
            self.seconds[place(frame)] += spent_s
        self._clocks = clocks


def place(frame: FrameType | None) -> Place:
    """Return the place of a stack."""
    modules = list(_modules(frame))
    if any(code == "<module>" and name != "__main__" for name, code in modules):
        return Place(MODULES)
    name, code = next(
        (each for each in modules if each[0].startswith(("dissector", "polars"))),
        (modules[0] if modules else ("", "")),
    )
    in_kernel = (name, code) == (_KERNELS, "__call__")
    if name == _KERNELS and not in_kernel:
        return Place(LOOPS)
    if name.startswith("dissector.kernel"):
        name = next(each for each, _ in modules if not each.startswith("dissector.kernel"))
    return Place(name, in_kernel)


def _modules(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    """Yield the modules and functions of a stack, innermost first."""
    while frame is not None:
        yield frame.f_globals.get("__name__", ""), frame.f_code.co_name
        frame = frame.f_back


def lines(seconds: Counter[Place]) -> Iterator[str]:
    """Yield the lines of a table, the most expensive module first."""
    total = seconds.total()
    names = Counter[str]()
    for each, spent_s in seconds.items():
        names[each.name] += spent_s
    yield f"{'CPU s':>7} {'share':>6} {'in kernels':>10}  where"
    rest_s = 0.0
    for name, spent_s in names.most_common():
        if spent_s < LEAST_SHARE * total:
            rest_s += spent_s
        else:
            yield _line(name, spent_s, total, seconds[Place(name, in_kernel=True)])
    yield _line(REST, rest_s, total)
    yield _line("all", total, total, sum(s for each, s in seconds.items() if each.in_kernel))


def _line(name: str, spent_s: float, total_s: float, in_kernels_s: float = 0.0) -> str:
    share = spent_s / total_s if total_s else 0.0
    return f"{spent_s:7.3f} {share:6.1%} {in_kernels_s:10.3f}  {name}"


def main(arguments: list[str]) -> int:
    """Run a command and print its profile."""
    with Profile() as profile:
        from dissector.cli import main as run

        status = run(arguments)
    for line in lines(profile.seconds):
        print(line, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
