"""
Machine code through LLVM: made for this processor, and loaded into this process.

This is all that a kernel needs that is on disk already: LLVM alone is there in some hundredths of a
second, Numba in half a second.
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
"""What compiled code may call: it is in every process, without Python."""

_engines: list[Any] = []
"""They own the code, which stays as long as the process."""

_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int32)
"""Without types of its arguments, which are arrays and bytes: a call takes a third less."""


def host_description() -> str:
    """Describe the processor and the compiler, which machine code depends on."""
    return f"{version} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def assemble(text: str) -> bytes:
    """
    Return the object file of LLVM's code in text form, with `ENTRY_POINT` as its only entrance.

    Raises:
        TypeError: The code needs functions that are not to be had without Python's runtime.
    """
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration:
            if function.name != ENTRY_POINT:
                function.linkage = "internal"
        elif not function.name.startswith("llvm.") and function.name not in ALLOWED_EXTERNALS:
            raise TypeError(f"it needs {function.name}, which compiled code has not")
    for variable in module.global_variables:
        if variable.is_declaration:
            raise TypeError(f"it needs {variable.name}, which compiled code has not")
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
    """Load an object file that `assemble` made, and return its entrance."""
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return _NATIVE(engine.get_function_address(ENTRY_POINT))
