"""
Translates functions of kernels to Cython without Python objects.

All numbers are 64-bit integers, which equal Python's unless they overflow. An array is a struct of
address and sizes. Constants replace their names. Functions of other modules are included in the
same file, so that the C compiler can inline them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.kernels.kernel_sources import Function, Module
from tools.kernels.syntax import assigned_values, call, literal, stored_names
from tools.kernels.types import (
    ANY_COLUMN,
    Array,
    Row,
    Rows,
    Struct,
    Two,
    Type,
    c_type,
    of_annotation,
)

INTRINSICS = {
    "dissector.kernel.memcpy.copy_bytes": (
        "    memmove(&v_target.p[v_at], &v_source.p[v_start], <size_t>kk_range(v_start,"
        " kk_range(v_at, v_length, v_target.n0, LINE), v_source.n0, LINE))\n"
    ),
    "dissector.kernel.crc32c.has_crc_instruction": "    return kk_can_crc()\n",
    "dissector.kernel.crc32c.update_crc_by_instruction": (
        "    return kk_crc_native(v_crc, &v_source.p[kk_at(v_at, v_source.n0 - 7, LINE)])\n"
    ),
    "dissector.kernel.keccak.absorb": (
        "    kk_absorb(&v_state.p[kk_at(24, v_state.n0, LINE) - 24],"
        " &v_block.p[kk_at(135, v_block.n0, LINE) - 135])\n"
    ),
}
"""Hand-written bodies in Cython."""

BUILTINS = {"len", "range", "int", "bool", "min", "max"}


@dataclass
class Unit:
    """The functions of one extension module, specialised by argument types."""

    written: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    known: dict[tuple[str, tuple[str, ...]], Specialised] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)

    def declare(self, kind: Type) -> None:
        """Declare the structs that a type needs, each after those inside it."""
        if isinstance(kind, Struct):
            for _, each in kind.fields:
                self.declare(each)
            self.structs[kind.name] = kind
        row = kind.row if isinstance(kind, Rows) else kind
        if isinstance(row, Row):
            self.rows.update((each.name, each) for each in row.inner)

    def specialise(self, function: Function, arguments: Sequence[Type] = ()) -> Specialised:
        """Return a function specialised for argument types; translate it at the first call."""
        kinds = parameter_types(function, arguments)
        for each in kinds:
            self.declare(each)
        generic = tuple(
            each.name
            for each, parameter in zip(kinds, function.tree.args.args, strict=True)
            if isinstance(each, Array) and _is_generic(parameter)
        )
        key = function.place, generic
        if key not in self.known:
            name = "_".join(["f", *function.place.split("."), *generic])
            self.known[key] = made = Specialised(function, name, kinds)
            _Translation(self, made).write()
        return self.known[key]


@dataclass
class Specialised:
    """
    A function specialised for argument types.

    Attributes:
        function: Its source.
        name: Name in Cython.
        parameters: Types of the parameters.
        written: Names of parameters written by the function or its callees; for arrays and rows in
            structs, names such as `tables.rows` or `tables.frames.start`.
    """

    function: Function
    name: str
    parameters: list[Type]
    written: set[str] = field(default_factory=set)

    @property
    def returns(self) -> Type:
        """Type of the result."""
        return of_annotation(self.function.tree.returns, self.function.module)


def parameter_types(function: Function, arguments: Sequence[Type]) -> list[Type]:
    """Return the types of parameters: annotated, or for generic ones those of the arguments."""
    parameters = function.tree.args.args
    kinds: list[Type] = []
    for i, each in enumerate(parameters):
        is_generic = _is_generic(each)
        kinds.append(
            arguments[i] if is_generic else of_annotation(each.annotation, function.module)
        )
    if arguments and kinds[: len(arguments)] != list(arguments):
        raise TypeError(f"{function.place} takes {kinds}, not {list(arguments)}")
    return kinds


def _is_generic(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and ast.unparse(parameter.annotation) == ANY_COLUMN


class _Translation(ast.NodeTransformer):
    """Translates one function; `visit` turns Python expressions into Cython ones."""

    def __init__(self, unit: Unit, target: Specialised) -> None:
        self._unit = unit
        self._target = target
        self._module: Module = target.function.module
        tree = target.function.tree
        names = [each.arg for each in tree.args.args]
        self._types: dict[str, Type] = dict(zip(names, target.parameters, strict=True))
        self._roots = {each: {each} for each in names}
        self._locals: dict[str, Type] = {}
        self._counters: list[str] = []

    def write(self) -> None:
        """Translate the function into its unit."""
        target, tree = self._target, self._target.function.tree
        for name in stored_names(tree):
            if name not in self._types:
                self._types[name] = self._locals[name] = 1
        for name, value in assigned_values(tree):
            self._infer_array(name, value)
        parameters = ", ".join(
            f"{c_type(kind)} v_{each.arg}"
            for each, kind in zip(tree.args.args, target.parameters, strict=True)
        )
        head = f"cdef inline {c_type(target.returns)} {target.name}({parameters}) noexcept nogil"
        body = INTRINSICS.get(target.function.place)
        if body is None:
            statements = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
            lines = "\n".join(
                ast.unparse(ast.fix_missing_locations(self.visit(copy.deepcopy(each))))
                for each in statements
            )
            names = [(f"v_{name}", kind) for name, kind in sorted(self._locals.items())]
            names += [(each, 1) for each in self._counters]
            declared = "".join(f"    cdef {c_type(kind)} {name}\n" for name, kind in names)
            body = declared + "\n".join("    " + line for line in lines.splitlines()) + "\n"
        else:
            body = body.replace("LINE", str(tree.lineno))
            self._target.written.update({"target"} & set(self._types))
        self._unit.declared.append(head)
        self._unit.written.append(f"{head}:\n{body}\n")

    def _infer_array(self, name: str, value: ast.expr) -> None:
        kind = self._type(value)
        if isinstance(kind, Array | Rows | Row | Two | Struct):
            self._types[name] = kind
            if name in self._locals:
                self._locals[name] = kind
            self._roots.setdefault(name, set()).update(self._root(value))

    def _root(self, value: ast.expr) -> set[str]:
        """Return the parameters, and arrays and tables in structs, that an expression refers to."""
        if isinstance(value, ast.Name):
            return self._roots.get(value.id, set())
        if isinstance(value, ast.Attribute) and isinstance(self._type(value.value), Struct):
            return {f"{owner}.{value.attr}" for owner in self._root(value.value)}
        if isinstance(value, ast.Attribute | ast.Subscript):
            return self._root(value.value)
        if isinstance(value, ast.IfExp):
            return self._root(value.body) | self._root(value.orelse)
        if isinstance(value, ast.Call):
            return set().union(*map(self._root, value.args))
        return set()

    def _type(self, value: ast.expr) -> Type:
        if isinstance(value, ast.Name):
            return self._types.get(value.id, 1)
        if isinstance(value, ast.Attribute):
            if self._is_constant(value):
                return 1
            owner = self._type(value.value)
            if not isinstance(owner, Struct | Row):
                raise TypeError(f"{self._place(value)}: {ast.unparse(value.value)} has no fields")
            if value.attr not in dict(owner.fields):
                raise TypeError(f"{self._place(value)}: {owner.name} has no field {value.attr}")
            return owner.field(value.attr)
        if isinstance(value, ast.Subscript):
            table = self._type(value.value) if not self._is_constant(value.value) else 1
            if isinstance(table, Rows):
                return table.row
            return table.item if isinstance(table, Two) else 1
        if isinstance(value, ast.IfExp):
            return self._type(value.body)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            return self._type_of_call(value.func.id)
        return 1

    def _type_of_call(self, name: str) -> Type:
        """Return the type of what a function returns, for rows; else 1."""
        function = None if name in BUILTINS else self._module.lookup(name)
        if not isinstance(function, Function):
            return 1
        kind = of_annotation(function.tree.returns, function.module)
        return kind if isinstance(kind, Row) else 1

    def _is_constant(self, value: ast.expr) -> bool:
        """Whether a name is that of a constant, or of one of a class or a module."""
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name) and value.id not in self._types

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Prefix local names; replace constants by their values."""
        if node.id in self._types:
            return ast.Name(f"v_{node.id}", node.ctx)
        value = self._module.lookup(node.id)
        if isinstance(value, Function):
            raise TypeError(f"{self._target.function.place} uses {node.id} as a value")
        return literal(value)

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Loop over a range, or a tuple of numbers."""
        body = [self.visit(each) for each in node.body]
        target, values = self.visit(node.target), node.iter
        if isinstance(values, ast.Tuple):
            counter = ast.Name(f"k_{node.lineno}", ast.Store())
            value = self.visit(values.elts[-1])
            for i, each in reversed(list(enumerate(values.elts[:-1]))):
                test = ast.Compare(counter, [ast.Eq()], [literal(i)])
                value = ast.IfExp(test, self.visit(each), value)
            body.insert(0, ast.Assign([target], value, lineno=node.lineno))
            target, values = counter, call("range", [literal(len(values.elts))])
            self._counters.append(counter.id)
        else:
            values = self.visit(values)
        return ast.For(target, values, body, [])

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Write numbers with 64 bits."""
        return literal(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Drop the annotation of a local name."""
        if node.value is None:
            return ast.Pass()
        return self.visit(ast.Assign([node.target], node.value, lineno=node.lineno))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Read or write an item of an array at its address."""
        if self._is_constant(node.value):
            return self._choice(self._module.lookup(ast.unparse(node.value)), node.slice)
        kind = self._type(node.value)
        if isinstance(kind, Rows | Two):
            return self._row_at(node, kind)
        if not isinstance(kind, Array):
            raise TypeError(f"{self._place(node)}: {ast.unparse(node.value)} is no array")
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(indices) != kind.ndim:
            raise TypeError(f"{self._place(node)}: {kind.ndim} indices are needed")
        if not isinstance(node.ctx, ast.Load):
            self._mark_written(node.value)
        array = self.visit(node.value)
        at: ast.expr | None = None
        for dimension, index in enumerate(indices):
            size = ast.Attribute(array, f"n{dimension}", ast.Load())
            line = ast.Constant(node.lineno)
            checked = call("kk_at", [self.visit(index), size, line])
            at = (
                checked
                if at is None
                else ast.BinOp(ast.BinOp(at, ast.Mult(), size), ast.Add(), checked)
            )
        assert at is not None
        item = ast.Subscript(ast.Attribute(array, "p", ast.Load()), at, node.ctx)
        return call("LL", [item]) if isinstance(node.ctx, ast.Load) else item

    def _row_at(self, node: ast.Subscript, kind: Rows | Two) -> ast.expr:
        """Return the address of a row of a table or inside a row, or one of two integers."""
        table, line = self.visit(node.value), ast.Constant(node.lineno)
        is_table = isinstance(kind, Rows)
        size = ast.Attribute(table, "n0", ast.Load()) if is_table else literal(2)
        first = ast.Attribute(table, "p", ast.Load()) if is_table else table
        at = call("kk_at", [self.visit(node.slice), size, line])
        if isinstance(kind, Two) and kind.item == 1:
            if not isinstance(node.ctx, ast.Load):
                self._mark_written(node.value)
            return ast.Subscript(first, at, node.ctx)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Tuple):
            raise TypeError(f"{self._place(node)}: rows have one index and are written by field")
        return ast.BinOp(first, ast.Add(), at)

    def _choice(self, values: Any, index: ast.expr) -> ast.expr:
        """Return an item of a constant tuple."""
        at = self.visit(index)
        found = literal(values[-1])
        for i in reversed(range(len(values) - 1)):
            found = ast.IfExp(ast.Compare(at, [ast.Eq()], [literal(i)]), literal(values[i]), found)
        return found

    def _mark_written(self, array: ast.expr) -> None:
        self._target.written |= self._root(array)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Name an array of a struct, or a constant; read or write a field of a row."""
        if self._is_constant(node):
            return literal(self._module.lookup(ast.unparse(node)))
        self._type(node)
        owner = self._type(node.value)
        if not isinstance(owner, Row):
            return ast.Attribute(self.visit(node.value), node.attr, node.ctx)
        if not isinstance(node.ctx, ast.Load):
            self._mark_written(node.value)
        return ast.Attribute(self.visit(node.value), f"f_{node.attr}", node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Call a function of the unit, or its equivalent of a Python function."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "len" and isinstance(self._type(node.args[0]), Two):
            return literal(2)
        if name == "len":
            return ast.Attribute(self.visit(node.args[0]), "n0", ast.Load())
        if name == "range":
            return call("range", map(self.visit, node.args))
        if name == "int":
            return self.visit(node.args[0])
        if name == "bool":
            return ast.Compare(self.visit(node.args[0]), [ast.NotEq()], [ast.Constant(0)])
        if name in ("min", "max"):
            first, *others = map(self.visit, node.args)
            for each in others:
                first = call(f"kk_{name}", [first, each])
            return first
        function = self._module.lookup(name)
        if not isinstance(function, Function) or node.keywords:
            raise TypeError(f"{self._place(node)}: {ast.unparse(node)} can't be compiled")
        called = self._unit.specialise(function, [self._type(each) for each in node.args])
        parameters, defaults = function.tree.args.args, function.tree.args.defaults
        for parameter, argument in zip(parameters, node.args, strict=False):
            if parameter.arg in called.written:
                self._mark_written(argument)
            for each in called.written:
                owner, _, array = each.partition(".")
                if array and owner == parameter.arg:
                    self._target.written |= {f"{root}.{array}" for root in self._root(argument)}
        given = [self.visit(each) for each in node.args]
        missing = len(parameters) - len(given)
        own = _Translation(self._unit, called)
        given += [own.visit(copy.deepcopy(each)) for each in defaults[len(defaults) - missing :]]
        return call(called.name, given)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Divide as Python does; shift numbers of 64 bits."""
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.FloorDiv):
            return call("kk_div", [left, right])
        if isinstance(node.op, ast.Mod):
            return call("kk_mod", [left, right])
        if isinstance(node.op, ast.LShift):
            left = call("LL", [left])
        return ast.BinOp(left, node.op, right)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Give all operands one type."""
        return ast.BoolOp(node.op, [call("LL", [self.visit(each)]) for each in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Negate, including the number without a representable opposite."""
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return literal(-node.operand.value)
        return ast.UnaryOp(node.op, self.visit(node.operand))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Write out divisions and shifts."""
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            raise TypeError(f"{self._place(node)}: write out the division")
        return ast.AugAssign(self.visit(node.target), node.op, self.visit(node.value))

    def _place(self, node: ast.expr | ast.stmt) -> str:
        return f"{self._module.path}:{node.lineno}"
