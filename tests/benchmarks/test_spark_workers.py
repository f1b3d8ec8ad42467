"""Functions of benchmarks run in workers of Spark, which do not have the benchmarks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pyspark import cloudpickle

from benchmarks.pipeline import worker_peak

RUN = """
import pickle, sys
assert "benchmarks" not in sys.modules
print(*pickle.load(sys.stdin.buffer)([0]))
assert "benchmarks" not in sys.modules
"""


def test_a_worker_without_the_benchmarks_measures_its_memory(tmp_path: Path) -> None:
    pickled = cloudpickle.dumps(worker_peak)
    command = [sys.executable, "-P", "-c", RUN]
    done = subprocess.run(command, input=pickled, cwd=tmp_path, capture_output=True, check=True)
    assert int(done.stdout) > 1 << 20
