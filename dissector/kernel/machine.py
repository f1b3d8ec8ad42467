"""
Machine code with LLVM: emitted for this processor, and loaded into this process.

A kernel in the cache needs only this module: LLVM loads in some hundredths of a second, Numba in
half a second.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import __version__ as version

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

ENTRY_POINT = "kernel"

ALLOWED_EXTERNALS = frozenset({"memcpy", "memmove", "memset"})
"""External functions that compiled code may call: every process has them, without Python."""

_engines: list[Any] = []
"""LLVM engines own the code, which stays loaded as long as the process lives."""

_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int32)
"""
Without argument types, because arguments are arrays and bytes: a call takes a third less
time.
"""


def host_description() -> str:
    """Return the compiler's version and the processor, on which machine code depends."""
    return f"{version} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def assemble(text: str) -> bytes:
    """
    Return the object file of LLVM code in text form; it exports only `ENTRY_POINT`.

    Raises:
        TypeError: The code needs functions of Python's runtime.
    """
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration:
            if function.name != ENTRY_POINT:
                function.linkage = "internal"
        elif not function.name.startswith("llvm.") and function.name not in ALLOWED_EXTERNALS:
            raise TypeError(f"it needs {function.name}, which compiled code can't call")
    for variable in module.global_variables:
        if variable.is_declaration:
            raise TypeError(f"it needs {variable.name}, which compiled code can't use")
        variable.linkage = "internal"
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )
    return bytes(target.emit_object(module))


def load(code: bytes) -> Callable[..., int]:
    """Load an object file that `assemble` returned; return its entry point."""
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return _NATIVE(engine.get_function_address(ENTRY_POINT))
