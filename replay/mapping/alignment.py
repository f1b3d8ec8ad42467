"""Pairs the fields of a captured and a live response, with array elements matched by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cluster.conversion.resource_names import NO_ID
from cluster.fields.field_layout import FieldValue, Scope, StructField, StructLayout, ValueField
from cluster.fields.walker import FunctionSource, ScopeVariable
from dissector.protocol.field_roles import Role
from replay.mapping.id_map import OPAQUE_ROLES, IdMap

Key = tuple[Any, ...]

_TOPICS = frozenset({Role.TOPIC, Role.TOPIC_ID})
_IN_SCOPE = frozenset({Role.RESOURCE, Role.COORDINATOR_KEY, Role.OFFSET})
"""Key roles with values that can only be mapped with sibling fields."""


_Condition = Callable[[ValueField], str]

PairWalk = Callable[
    [Mapping[str, Any], Mapping[str, Any], Scope, Scope, IdMap],
    Iterator[tuple[FieldValue, FieldValue]],
]
"""Called with a captured and a live body, the scope of each, and the id mapping for live keys."""


def compile_pairs(
    captured: StructLayout, live: StructLayout, condition: _Condition = lambda _: "True"
) -> PairWalk:
    """
    Return a function that yields the pairs of fields of two bodies, where neither is null.

    An array of scalars is one field.

    Args:
        captured: The fields of the captured body.
        live: The fields of the live body.
        condition: Returns the condition, on a field's values `x` and `y`, under which it is wanted;
            empty for never.
    """
    code = FunctionSource("def f(a, b, s, t, ids):")
    code.names.update(FieldValue=FieldValue, Scope=Scope, align=align, quickly=_align_equal)
    code.add_line(1, "yield from ()")
    captured_side = _Side("a", "", ScopeVariable("s").inside(captured, "a"))
    live_side = _Side("b", "", ScopeVariable("t").inside(live, "b"))
    _pairs(code, 1, (captured, live), (captured_side, live_side), condition)
    return code.build()


class _Side(NamedTuple):
    """One side in the generated code: variable, path and scopes of the current struct."""

    body: str
    path: str
    scopes: ScopeVariable

    def below(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def place(self, code: FunctionSource, leaf: ValueField, value: str) -> str:
        """Return the code that makes the `FieldValue` of a field."""
        given = f"{code.name_of(leaf.role)}, {code.name_of(leaf.field)}, {value}"
        path = self.below(leaf.name)
        return f"FieldValue(f{path!r}, {given}, {self.body}, {leaf.name!r}, {self.scopes.variable})"


def _pairs(
    code: FunctionSource,
    depth: int,
    layouts: tuple[StructLayout, StructLayout],
    sides: tuple[_Side, _Side],
    worth: _Condition,
) -> None:
    captured_side, live_side = sides
    others = {member.name: member for member in layouts[1].members}
    for member in layouts[0].members:
        other = others.get(member.name)
        if other is None or isinstance(member, ValueField) != isinstance(other, ValueField):
            continue
        condition = worth(member) if isinstance(member, ValueField) else "True"
        if not condition:
            continue
        x, y = (f"{side.body}.get({member.name!r})" for side in sides)
        code.add_line(depth, f"x = {x}; y = {y}")
        code.add_line(depth, f"if x is not None and y is not None and {condition}:")
        if isinstance(member, StructField) and isinstance(other, StructField):
            _branches(code, depth + 1, (member, other), sides, worth)
        elif isinstance(member, ValueField) and isinstance(other, ValueField):
            first = captured_side._replace(
                scopes=captured_side.scopes.materialise(code, depth + 1, f"s{depth}")
            )
            second = live_side._replace(
                scopes=live_side.scopes.materialise(code, depth + 1, f"t{depth}")
            )
            places = first.place(code, member, "x"), second.place(code, other, "y")
            code.add_line(depth + 1, f"yield {', '.join(places)}")


def _branches(
    code: FunctionSource,
    depth: int,
    branches: tuple[StructField, StructField],
    sides: tuple[_Side, _Side],
    condition: _Condition,
) -> None:
    name, layouts = branches[0].name, (branches[0].layout, branches[1].layout)
    paths = [side.below(name) for side in sides]
    inside = f"a{depth}", f"b{depth}"
    if branches[0].is_list:
        i, j, x, y = f"i{depth}", f"j{depth}", f"x{depth}", f"y{depth}"
        own, other = (code.name_of(layout) for layout in layouts)
        code.add_line(depth, f"{x} = x; {y} = y; p = None")
        names, live_names = (tuple(key.name for key in layout.keys) for layout in layouts)
        if names == live_names:
            roles = code.name_of({key.role for key in layouts[0].keys})
            code.add_line(depth, f"if ids.roles.isdisjoint({roles}):")
            code.add_line(depth + 1, f"p = quickly({x}, {y}, {names})")
        code.add_line(depth, "if p is None:")
        scope = sides[0].scopes.materialise(code, depth + 1, f"u{depth}").variable
        code.add_line(depth + 1, f"p = align({own}, {x}, {other}, {y}, {scope}, ids)")
        code.add_line(depth, f"for {i}, {j} in p:")
        depth += 1
        code.add_line(depth, f"if {i} is None or {j} is None: continue")
        code.add_line(depth, f"{inside[0]} = {x}[{i}]; {inside[1]} = {y}[{j}]")
        paths = [f"{path}[{{{index}}}]" for path, index in zip(paths, (i, j), strict=True)]
    else:
        code.add_line(depth, f"{inside[0]} = x; {inside[1]} = y")
    below = [
        _Side(body, path, side.scopes.inside(layout, body))
        for body, path, side, layout in zip(inside, paths, sides, layouts, strict=True)
    ]
    _pairs(code, depth, layouts, (below[0], below[1]), condition)


def _align_equal(
    captured: Sequence[Mapping[str, Any]], live: Sequence[Mapping[str, Any]], keys: tuple[str, ...]
) -> list[tuple[int, int]] | None:
    """Pair two arrays with equal raw keys in order; return None if they are not."""
    if len(captured) != len(live):
        return None
    for captured_element, live_element in zip(captured, live, strict=True):
        for key in keys:
            if captured_element.get(key) != live_element.get(key):
                return None
    return [(index, index) for index in range(len(captured))]


def align(
    layout: StructLayout,
    captured: Sequence[Mapping[str, Any]],
    live_node: StructLayout,
    live: Sequence[Mapping[str, Any]],
    scope: Scope,
    ids: IdMap,
) -> list[tuple[int | None, int | None]]:
    """
    Pair the elements of two arrays of structs by their keys, or by index without keys.

    Keys assigned by brokers identify nothing here: their mapping is to be learned from the pairs.

    Args:
        layout: The fields of a captured element.
        captured: The captured elements.
        live_node: The fields of a live element.
        live: The live elements.
        scope: The scope that encloses the arrays, in captured values.
        ids: The id mapping for live keys.

    Returns:
        Indices in the captured and the live array, None if the other array has no such element: in
        the order of the captured array, elements found only in the live array at the end.
    """
    captured_keys: list[Key] = [()] * len(captured)
    live_keys: list[Key] = [()] * len(live)
    if not all(leaf.role in OPAQUE_ROLES for leaf in layout.keys):
        captured_keys = [captured_key(layout, element, ids) for element in captured]
        live_keys = [live_key(live_node, element, scope, ids) for element in live]
    if captured_keys == live_keys:
        return [(index, index) for index in range(len(captured_keys))]
    indices_by_key: dict[Key, list[int]] = defaultdict(list)
    for index, key in enumerate(live_keys):
        indices_by_key[key].append(index)
    out: list[tuple[int | None, int | None]] = []
    for index, key in enumerate(captured_keys):
        candidates = indices_by_key.get(key)
        out.append((index, candidates.pop(0) if candidates else None))
    unpaired = sorted(index for candidates in indices_by_key.values() for index in candidates)
    return out + [(None, index) for index in unpaired]


def captured_key(layout: StructLayout, element: Mapping[str, Any], ids: IdMap) -> Key:
    """Return the key of a captured element, with topics by name where the name is known."""
    values = {leaf.role: element.get(leaf.name) for leaf in layout.keys if leaf.role in _TOPICS}
    others = (element.get(leaf.name) for leaf in layout.keys if leaf.role not in _TOPICS)
    if not values:
        return tuple(others)
    name, topic_id = values.get(Role.TOPIC), values.get(Role.TOPIC_ID)
    if not name and topic_id not in (None, NO_ID):
        name = ids.captured_topics.topic_name(topic_id) or topic_id
    return (name, *others)


def live_key(layout: StructLayout, element: Mapping[str, Any], scope: Scope, ids: IdMap) -> Key:
    """Return the key of a live element, in captured values."""
    if any(leaf.role in _IN_SCOPE for leaf in layout.keys):
        scope = scope.inside(layout, element)
    captured = {
        leaf.name: ids.captured(leaf.role, element.get(leaf.name), scope) for leaf in layout.keys
    }
    return captured_key(layout, captured, ids)
