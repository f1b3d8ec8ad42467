"""Types of values in kernels, and their declarations in Cython."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import cast

from tools.kernels.kernel_sources import Module

MAX_DIMENSIONS = 3


@dataclass(frozen=True)
class Array:
    """
    A type of array.

    Attributes:
        name: Name in `dissector.kernel.arrays`.
        item: C type of items.
        codes: Buffer formats of the items, in the notation of `struct`, with `l` also for `q`,
            which some systems have; the first is canonical.
        ndim: Number of dimensions.
    """

    name: str
    item: str
    codes: str
    ndim: int

    @property
    def declaration(self) -> str:
        """The struct of such an array: address, and size in each dimension."""
        sizes = "\n".join(f"    long long n{d}" for d in range(self.ndim))
        return f"cdef struct {self.name}:\n    {self.item}* p\n{sizes}\n"


ARRAYS = {
    each.name: each
    for each in (
        Array("U8", "unsigned char", "B?", 1),
        Array("I8", "signed char", "b", 1),
        Array("I32", "int", "i", 1),
        Array("I64", "long long", "l", 1),
        Array("I8Table", "signed char", "b", 2),
        Array("I32Table", "int", "i", 2),
        Array("I64Table", "long long", "l", 2),
        Array("I64Cube", "long long", "l", 3),
    )
}

ANY_COLUMN = "AnyColumn"
"""Annotation of an array with a type chosen by the caller."""


@dataclass(frozen=True)
class Row:
    """
    A row with named fields: a `NamedRow` in Python, passed by address.

    Attributes:
        name: Place of its class, with underscores.
        fields: Types of the fields by name, in order: 1 is an integer.
    """

    name: str
    fields: tuple[tuple[str, int | Two], ...]
    ndim = 0

    @property
    def declaration(self) -> str:
        """The struct of the fields."""
        lines = (
            f"    {c_type(kind.item).rstrip('*')} f_{name}[2]\n"
            if isinstance(kind, Two)
            else f"    long long f_{name}\n"
            for name, kind in self.fields
        )
        return f"cdef struct {self.name}:\n{''.join(lines)}"

    @property
    def codes(self) -> str:
        """The buffer format of a table of such rows."""
        names = ((_code(kind), name.replace("q", "l")) for name, kind in self.fields)
        return "T{" + "".join(f"{code}:{name}:" for code, name in names) + "}"

    @property
    def inner(self) -> list[Row]:
        """The rows inside this one, each after those inside it, then this one."""
        twos = [kind.item for _, kind in self.fields if isinstance(kind, Two)]
        found = [each for item in twos if isinstance(item, Row) for each in item.inner]
        return [*found, self]

    def field(self, name: str) -> int | Two:
        """
        Return the type of a field.

        Raises:
            KeyError: There is no such field.
        """
        return dict(self.fields)[name]


@dataclass(frozen=True)
class Two:
    """Two rows, or two integers (1), inside a row."""

    item: Row | int


@dataclass(frozen=True)
class Rows:
    """A table of rows."""

    row: Row
    ndim = 1

    @property
    def name(self) -> str:
        """Its name in Cython."""
        return f"{self.row.name}_rows"

    @property
    def item(self) -> str:
        """C type of its rows."""
        return self.row.name

    @property
    def codes(self) -> str:
        """Its buffer format."""
        return self.row.codes

    @property
    def declaration(self) -> str:
        """The struct of such a table: address and number of rows."""
        return f"cdef struct {self.name}:\n    {self.row.name}* p\n    long long n0\n"


@dataclass(frozen=True)
class Struct:
    """
    A struct of arrays, rows and other structs: a NamedTuple in Python, passed by address.

    Attributes:
        name: Place of its class, with underscores.
        fields: Arrays, rows and structs by name, in order.
    """

    name: str
    fields: tuple[tuple[str, Array | Rows | Row | Struct], ...]

    @property
    def declaration(self) -> str:
        """The struct of the arrays."""
        fields = "".join(f"    {c_type(kind)} {name}\n" for name, kind in self.fields)
        return f"cdef struct {self.name}:\n{fields}"

    def field(self, name: str) -> Array | Rows | Row | Struct:
        """
        Return the type of an array in the struct.

        Raises:
            KeyError: There is no such array.
        """
        return dict(self.fields)[name]


Type = Array | Rows | Row | Two | Struct | int
"""
An array, a table, a row, two of a row's, a struct of arrays, or a number of integers: 1, more for
a tuple, 0 for None.
"""


def of_annotation(annotation: ast.expr | None, module: Module) -> Type:
    """
    Return the type for an annotation in a module.

    Raises:
        KeyError: The annotation is not supported.
    """
    text = ast.unparse(annotation) if annotation is not None else ""
    if text in ARRAYS:
        return ARRAYS[text]
    if text in ("int", "bool"):
        return 1
    if text == "None":
        return 0
    if isinstance(annotation, ast.Name) and (found := module.find_class(text)) is not None:
        return _of_class(*found)
    if isinstance(annotation, ast.Subscript):
        items = annotation.slice
        if text.startswith("tuple[") and isinstance(items, ast.Tuple):
            return len(items.elts)
        item = of_annotation(items, module)
        if text.startswith("Rows[") and isinstance(item, Row):
            return Rows(item)
        if text.startswith("Two[") and isinstance(item, Row | int):
            return Two(item)
    raise KeyError(f"{text or 'no annotation'} is not a supported type")


def _of_class(module: Module, tree: ast.ClassDef) -> Struct | Row:
    """Return the type of a NamedTuple of arrays, or of a `NamedRow`."""
    place = f"{module.name}.{tree.name}"
    fields = [
        (each.target.id, of_annotation(each.annotation, module))
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    bases = [ast.unparse(each) for each in tree.bases]
    kinds: tuple[type, ...] = (Array, Rows, Row, Struct) if bases == ["NamedTuple"] else (int, Two)
    if bases not in (["NamedTuple"], ["NamedRow"]):
        raise KeyError(f"{place} is neither a NamedTuple of arrays nor a NamedRow")
    for name, kind in fields:
        if not isinstance(kind, kinds) or kind == 0:
            raise KeyError(f"{place}: {name} has a type that can't be there")
    made = place.replace(".", "_")
    if bases == ["NamedRow"]:
        return Row(f"r_{made}", cast("tuple[tuple[str, int | Two], ...]", tuple(fields)))
    return Struct(
        f"s_{made}", cast("tuple[tuple[str, Array | Rows | Row | Struct], ...]", tuple(fields))
    )


def _code(kind: int | Two) -> str:
    if isinstance(kind, Two):
        return "(2)" + (kind.item.codes if isinstance(kind.item, Row) else "l")
    return "l"


def c_type(kind: Type) -> str:
    """Return the type in Cython."""
    if isinstance(kind, Array | Rows):
        return kind.name
    if isinstance(kind, Struct | Row):
        return f"{kind.name}*"
    if isinstance(kind, Two):
        return c_type(kind.item).rstrip("*") + "*"
    if kind == 0:
        return "void"
    return "long long" if kind == 1 else f"({', '.join(['long long'] * kind)})"
