"""Types of values in kernels, and their declarations in Cython."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

MAX_DIMENSIONS = 3


@dataclass(frozen=True)
class Array:
    """
    A type of array.

    Attributes:
        name: Name in `dissector.kernel.arrays`.
        item: C type of items.
        codes: Buffer formats of the items, in the notation of `struct`; the first is canonical.
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
        Array("I64", "long long", "lq", 1),
        Array("I8Table", "signed char", "b", 2),
        Array("I32Table", "int", "i", 2),
        Array("I64Table", "long long", "lq", 2),
        Array("I64Cube", "long long", "lq", 3),
    )
}

ANY_COLUMN = "AnyColumn"
"""Annotation of an array with a type chosen by the caller."""


@dataclass(frozen=True)
class Struct:
    """
    A struct of arrays: a NamedTuple in Python, passed by address.

    Attributes:
        name: Place of its class, with underscores.
        fields: Arrays by name, in order.
    """

    name: str
    fields: tuple[tuple[str, Array], ...]

    @property
    def declaration(self) -> str:
        """The struct of the arrays."""
        fields = "".join(f"    {kind.name} {name}\n" for name, kind in self.fields)
        return f"cdef struct {self.name}:\n{fields}"

    def field(self, name: str) -> Array:
        """
        Return the type of an array in the struct.

        Raises:
            KeyError: There is no such array.
        """
        return dict(self.fields)[name]


Type = Array | Struct | int
"""An array, a struct of arrays, or a number of integers: 1, more for a tuple, 0 for None."""


def of_annotation(
    annotation: ast.expr | None, find_class: Callable[[str], tuple[str, ast.ClassDef] | None]
) -> Type:
    """
    Return the type for an annotation.

    Args:
        annotation: The annotation.
        find_class: Returns place and definition of a class of the project.

    Raises:
        KeyError: The annotation is not supported.
    """
    text = ast.unparse(annotation) if annotation is not None else ""
    if text in ARRAYS:
        return ARRAYS[text]
    if isinstance(annotation, ast.Name) and (found := find_class(text)) is not None:
        return _struct(*found)
    if text in ("int", "bool"):
        return 1
    if text == "None":
        return 0
    if isinstance(annotation, ast.Subscript) and text.startswith("tuple["):
        assert isinstance(annotation.slice, ast.Tuple)
        return len(annotation.slice.elts)
    raise KeyError(f"{text or 'no annotation'} is not a supported type")


def _struct(place: str, tree: ast.ClassDef) -> Struct:
    """Return the type of a NamedTuple of arrays."""
    fields = tuple(
        (each.target.id, ARRAYS[ast.unparse(each.annotation)])
        for each in tree.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    )
    if "NamedTuple" not in map(ast.unparse, tree.bases):
        raise KeyError(f"{place} is not a NamedTuple of arrays")
    return Struct("_".join(["s", *place.split(".")]), fields)


def c_type(kind: Type) -> str:
    """Return the type in Cython."""
    if isinstance(kind, Array):
        return kind.name
    if isinstance(kind, Struct):
        return f"{kind.name}*"
    if kind == 0:
        return "void"
    return "long long" if kind == 1 else f"({', '.join(['long long'] * kind)})"
