"""Machine code: made, loaded and called; and what it may call."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest

from dissector.kernel.machine import ENTRY_POINT, assemble, host_description, load

DOUBLED = f"""
define i32 @{ENTRY_POINT}(ptr %result, ptr %words) {{
  %word = load i64, ptr %words
  %doubled = call i64 @twice(i64 %word)
  store i64 %doubled, ptr %result
  ret i32 5
}}
define i64 @twice(i64 %word) {{
  %doubled = mul i64 %word, FACTOR
  ret i64 %doubled
}}
"""


def run(code: bytes, number: int) -> int:
    result = (ctypes.c_int64 * 1)()
    assert load(code)(result, number.to_bytes(8, "little")) == 5
    return result[0]


def test_code_is_made_loaded_and_called() -> None:
    code = assemble(DOUBLED.replace("FACTOR", "2"))
    assert run(code, 21) == 42
    assert run(code, 2**40) == 2**41


def test_code_of_the_same_names_stays_apart() -> None:
    first, second = (assemble(DOUBLED.replace("FACTOR", factor)) for factor in "23")
    assert [run(first, 5), run(second, 5), run(first, 5)] == [10, 15, 10]


def test_the_machines_own_copy_may_be_called() -> None:
    text = f"""
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define i32 @{ENTRY_POINT}(ptr %result, ptr %words) {{
      %size = load i64, ptr %words
      call void @llvm.memcpy.p0.p0.i64(ptr %result, ptr %words, i64 %size, i1 false)
      ret i32 5
    }}"""
    assert run(assemble(text), 8) == 8


@pytest.mark.parametrize(
    ("declared", "use"),
    [
        ("declare void @NRT_Free(ptr)", "call void @NRT_Free(ptr %words)"),
        ("@NRT_Free = external global ptr", "store ptr %words, ptr @NRT_Free"),
    ],
)
def test_what_is_in_a_runtime_is_refused(declared: str, use: str) -> None:
    text = (
        f"{declared}\ndefine i32 @{ENTRY_POINT}(ptr %result, ptr %words) {{\n{use}\nret i32 5\n}}"
    )
    with pytest.raises(TypeError, match="it needs NRT_Free"):
        assemble(text)


def test_many_threads_may_call_it() -> None:
    code = assemble(DOUBLED.replace("FACTOR", "2"))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: run(code, n), range(50))) == list(range(0, 100, 2))


def test_the_host_is_the_same_each_time() -> None:
    assert host_description() == host_description()
