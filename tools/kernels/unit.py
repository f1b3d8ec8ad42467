"""Source of one extension module: functions, and entry points of kernels for Python."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tools.kernels.kernel_sources import Function, consulted, forget, modules_with_kernels
from tools.kernels.translate import Specialised, Unit
from tools.kernels.types import ARRAYS, Array, Row, Rows, Struct, Type, c_type

_SOURCE = "SOURCE = "

PRELUDE = Path(__file__).with_name("prelude.pyx")


def unit_text(package: str) -> str:
    """
    Return the Cython module with the kernels of a package.

    Its `FILES` are the sources that it was made of, relative to the folder of all packages.
    """
    forget()
    unit = Unit()
    kernels = [each for module in modules_with_kernels(package) for each in module.kernels]
    entrances = [_entrance(unit.specialise(each)) for each in kernels]
    tables = [each for row in unit.rows.values() for each in (row, Rows(row))]
    declared = (*ARRAYS.values(), *tables, *unit.structs.values())
    structs = "\n".join(each.declaration for each in declared)
    files = f"FILES = {tuple(each.as_posix() for each in consulted())!r}"
    text = "\n".join((PRELUDE.read_text(), structs, *unit.written, *entrances, files))
    return f"{text}\n{_SOURCE}{hashlib.sha256(text.encode()).hexdigest()!r}\n"


def unit_hash(text: str) -> str:
    """Return the hash of a unit's text; the built module has it as `SOURCE`."""
    return text.rpartition(_SOURCE)[2].strip().strip("'")


def entrance_name(function: Function) -> str:
    """Return the name of a compiled kernel, as used by `Kernel`."""
    return function.place.replace(".", "__")


def _entrance(kernel: Specialised) -> str:
    """Return a Python function that acquires the buffers of arrays, and runs without the GIL."""
    function = kernel.function
    names = [each.arg for each in function.tree.args.args]
    parameters = list(zip(names, kernel.parameters, strict=True))
    declared = ", ".join(f"long long {name}" if kind == 1 else name for name, kind in parameters)
    arrays = [each for parameter in parameters for each in _arrays(*parameter)]
    lines = [f"def {entrance_name(function)}({declared}):"]
    lines += [f"    cdef Py_buffer views[{max(len(arrays), 1)}]", "    cdef int taken = 0"]
    lines += [f"    cdef {_held(kind)} v_{name}" for name, kind in parameters if kind != 1]
    structs = [each for parameter in parameters for each in _inner_structs(*parameter)]
    lines += [f"    cdef {kind.name} {_own_name(place)}" for place, kind in structs]
    lines += [f"    v_{place} = &{_own_name(place)}" for place, _ in structs]
    if kernel.returns:
        lines.append("    cdef long long result = 0")
    lines.append("    try:")
    for i, (name, kind) in enumerate(arrays):
        writes = name in kernel.written
        where = f"{function.tree.name}: {name}"
        expected = f"{writes}, {kind.codes!r}, {kind.ndim}, {where!r}"
        lines.append(f"        kk_fill(&views[{i}], {name}, {expected})")
        lines.append("        taken += 1")
        if isinstance(kind, Row):
            lines.append(f"        v_{name} = <{kind.name}*>views[{i}].buf")
            continue
        lines.append(f"        v_{name}.p = <{kind.item}*>views[{i}].buf")
        lines += [f"        v_{name}.n{d} = views[{i}].shape[{d}]" for d in range(kind.ndim)]
    lines.append("        with nogil:")
    arguments = ", ".join(_argument(*each) for each in parameters)
    lines.append(f"            {'result = ' if kernel.returns else ''}{kernel.name}({arguments})")
    lines.append("    finally:")
    lines.append("        kk_release(views, taken)")
    lines.append(f"    kk_check({function.place!r})")
    if kernel.returns:
        lines.append("    return result")
    return "\n".join(lines) + "\n"


def _arrays(name: str, kind: Type) -> list[tuple[str, Array | Rows | Row]]:
    """Return the arrays and rows of a parameter, with the expressions that name them."""
    if isinstance(kind, Array | Rows | Row):
        return [(name, kind)]
    if isinstance(kind, Struct):
        return [each for field, inner in kind.fields for each in _arrays(f"{name}.{field}", inner)]
    return []


def _inner_structs(name: str, kind: Type) -> list[tuple[str, Struct]]:
    """Return the structs inside a parameter, with the expressions that name them."""
    found: list[tuple[str, Struct]] = []
    for field, inner in kind.fields if isinstance(kind, Struct) else ():
        if isinstance(inner, Struct):
            place = f"{name}.{field}"
            found += [(place, inner), *_inner_structs(place, inner)]
    return found


def _own_name(place: str) -> str:
    """Return the name of the variable that holds a struct inside a parameter."""
    return f"w_{place.replace('.', '_')}"


def _held(kind: Type) -> str:
    """Return the type of what an entry point holds for a parameter."""
    return kind.name if isinstance(kind, Struct) else c_type(kind)


def _argument(name: str, kind: Type) -> str:
    if isinstance(kind, Struct):
        return f"&v_{name}"
    return name if kind == 1 else f"v_{name}"
