"""Measurements of processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.timing import process

HELD_BYTES = 128 << 20


def python(program: str) -> tuple[str, ...]:
    """Return a command that runs a program, with little loaded."""
    return sys.executable, "-I", "-S", "-c", program


def test_memory_of_the_measuring_process_is_excluded() -> None:
    held = b"x" * HELD_BYTES
    assert process(python("pass"), runs=1).peak_bytes < len(held)


def test_memory_of_a_process_is_measured() -> None:
    held = f"b'x' * {HELD_BYTES}"
    assert process(python(held), runs=1).peak_bytes > HELD_BYTES


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    output = tmp_path / "said"
    process(python("print('hello')"), output, runs=1)
    assert output.read_text() == "hello\n"


def test_a_failed_process_is_not_measured() -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        process(python("raise SystemExit(3)"))
    assert raised.value.returncode == 3


def test_statuses_that_tell_of_findings_are_measured() -> None:
    assert process(python("raise SystemExit(1)"), runs=1, statuses=(0, 1)).seconds > 0
