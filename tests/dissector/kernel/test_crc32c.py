"""The step of a CRC is the same in Python, by tables and by the processor's instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from crc32c import crc32c

from dissector.engine.records.checksum import crc32c_table
from dissector.kernel import Kernel, compiler, machine
from dissector.kernel.arguments import ArrayType
from dissector.kernel.crc32c import update_crc, update_crc_by_table, update_crc_intrinsic
from dissector.kernel.variants import _native_callable

NOISE = np.random.default_rng(1).integers(0, 256, 256, dtype=np.uint8)
TYPES = ArrayType("|u1", 1), None, None, ArrayType("<i8", 1)


def _advance(source: Any, at: int, end: int, table: Any) -> int:
    value = 0xFFFFFFFF
    while at < end:
        value = update_crc(value, source, at, table)
        at += 8
    return value ^ 0xFFFFFFFF


def _by_table(source: Any, at: int, end: int, table: Any) -> int:
    value = 0xFFFFFFFF
    while at < end:
        value = update_crc_by_table(value, source, at, table)
        at += 8
    return value ^ 0xFFFFFFFF


@pytest.mark.parametrize("work", [1, 10**9])
@pytest.mark.parametrize("function", [_advance, _by_table])
def test_it_is_that_of_the_library(function: Any, work: int) -> None:
    kernel = Kernel(function)
    for at in range(16):
        for end in range(at, 240, 8):
            expected = crc32c(NOISE[at:end].tobytes())
            assert kernel(NOISE, at, end, crc32c_table(), work=work) == expected


def test_a_processor_without_the_instruction_uses_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", dict)
    assert update_crc_intrinsic() is None
    monkeypatch.undo()
    monkeypatch.setitem(compiler._INTRINSICS, update_crc, lambda: None)
    code = compiler.compile_kernel(_advance, TYPES).code
    compiled = _native_callable(machine.load(code), True, TYPES, "update_crc")
    assert compiled(NOISE, 0, 240, crc32c_table()) == crc32c(NOISE[:240].tobytes())
