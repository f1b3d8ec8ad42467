"""Compiled kernels from disk: found again, made anew when something changed, said to a person."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dissector.kernel import compiler, machine, store, variants
from dissector.kernel.arguments import ArrayType, SignatureMismatch, Types
from dissector.kernel.variants import variant
from tests.dissector.kernel import kernels

BYTES: Types = (ArrayType("|u1", 1), None)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let nothing be compiled or loaded yet."""
    monkeypatch.setenv("KAFKASHARK_CACHE", str(tmp_path))
    monkeypatch.setattr(variants, "_loaded", {})
    monkeypatch.setattr(variants, "_notified", set())
    return tmp_path / "kernels"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Types]:
    """List what is compiled."""
    done: list[Types] = []
    real = compiler.compile_kernel

    def watched(function: Any, types: Types) -> Any:
        done.append(types)
        return real(function, types)

    monkeypatch.setattr(compiler, "compile_kernel", watched)
    return done


def total(types: Types = BYTES) -> int | None:
    made = variant(kernels.total, types, compiling=True)
    assert made is not None
    assert types[0] is not None
    return made(np.array([1, 0, 1], types[0].dtype), 5)


def kept(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.name != store.LOCK]


def test_what_was_compiled_is_loaded(
    folder: Path, compiled: list[Types], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert variant(kernels.total, BYTES, compiling=False) is None
    assert total() == total() == 5 + 2 * 31
    monkeypatch.setattr(variants, "_loaded", {})
    assert variant(kernels.total, BYTES, compiling=False) is not None
    assert total() == 67
    assert compiled == [BYTES]
    assert len(kept(folder)) == 1


def test_truth_values_share_the_code_of_bytes(compiled: list[Types]) -> None:
    assert total() == total((ArrayType("|b1", 1), None)) == 67
    assert compiled == [BYTES]


def test_other_types_are_compiled_too(compiled: list[Types]) -> None:
    assert total() == total((ArrayType("<i8", 1), None)) == 67
    assert len(compiled) == 2


def test_a_changed_constant_is_noticed(
    compiled: list[Types], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert total() == 67
    monkeypatch.setattr(kernels, "FACTOR", 2)
    assert total() == 9
    assert len(compiled) == 2


def test_another_processor_is_noticed(
    compiled: list[Types], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert total() == 67
    monkeypatch.setattr(variants, "_toolchain", lambda: ("another",))
    assert total() == 67
    assert len(compiled) == 2


def test_a_damaged_file_is_made_anew(
    folder: Path, compiled: list[Types], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert total() == 67
    (file,) = kept(folder)
    whole = file.read_bytes()
    for damaged in (whole[:-100], whole[:200] + b"\xcc" * 500 + whole[700:], b""):
        file.write_bytes(damaged)
        monkeypatch.setattr(variants, "_loaded", {})
        assert total() == 67
        assert store.read(file.name)
    assert len(compiled) == 4


def test_where_nothing_can_be_kept_it_works_all_the_same(
    folder: Path, compiled: list[Types], capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write_text("no folder")
    assert total() == total() == 67
    assert compiled == [BYTES]
    assert capsys.readouterr().err == ""


def test_a_person_is_told_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    said: list[str] = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "write", said.append, raising=False)
    folder.write_text("no folder")
    total()
    total((ArrayType("<i4", 1), None))
    monkeypatch.undo()
    assert [line for line in said if line.strip()] == [
        "kafkashark: compiling kernels, once on this machine",
        f"kafkashark: compiled kernels can't be saved in {folder}",
    ]


def test_arguments_that_do_not_fit() -> None:
    made = variant(kernels.total, BYTES, compiling=True)
    assert made is not None
    data = np.zeros(3, np.uint8)
    for wrong in ((data,), (data, 1, 2), (data, 2**63), (data, data), (3, data), (data[::2], 1)):
        with pytest.raises(SignatureMismatch):
            made(*wrong)


def test_a_kernel_that_raises_is_told() -> None:
    made = variant(kernels.raising, (None,), compiling=True)
    assert made is not None
    assert made(2) == 2
    with pytest.raises(RuntimeError, match="raising"):
        made(3)


def test_threads_share_one(compiled: list[Types]) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: total(), range(8))) == [67] * 8
    assert compiled == [BYTES]


def test_processes_share_one(
    folder: Path, compiled: list[Types], monkeypatch: pytest.MonkeyPatch
) -> None:
    total()
    (file,) = kept(folder)
    code = file.read_bytes()
    file.unlink()
    monkeypatch.setattr(variants, "_loaded", {})

    @contextmanager
    def waited(name: str) -> Iterator[None]:
        """Let another process be done when it is our turn."""
        (folder / name).write_bytes(code)
        yield

    monkeypatch.setattr(store, "compile_lock", waited)
    assert total() == 67
    assert compiled == [BYTES]


def test_kept_code_needs_no_numba() -> None:
    total()
    again = (
        "import sys, numpy as np\n"
        "from dissector.kernel import Kernel\n"
        "from tests.dissector.kernel import kernels\n"
        "data = np.array([1, 0, 1], np.uint8)\n"
        "assert Kernel(kernels.total).compiled(data, 5) == 67\n"
        "print('numba' in sys.modules, 'llvmlite' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=True)
    assert ran.stdout == "False True\n"


def test_little_work_does_without_llvm() -> None:
    little = (
        "import sys, numpy as np\n"
        "from dissector.kernel import Kernel\n"
        "from tests.dissector.kernel import kernels\n"
        "assert Kernel(kernels.total)(np.ones(2, np.uint8), 5, work=2) == 67\n"
        "print('numba' in sys.modules, 'llvmlite' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", little], capture_output=True, text=True, check=True)
    assert ran.stdout == "False False\n"


def test_the_store_and_the_machine_are_what_is_used() -> None:
    """What other tests replace must be what the module looks up."""
    assert variants.store is store
    assert variants.machine is machine
