"""Pairs the fields of a captured and a live response, with array elements matched by key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from replay.fields.field_layout import Branch, Leaf, Node, Place, Role, Scope
from replay.fields.walker import Code, Scopes
from replay.mapping.id_map import GIVEN, World
from replay.mapping.resource_names import NO_ID

Key = tuple[Any, ...]

_TOPICS = frozenset({Role.TOPIC, Role.TOPIC_ID})
_IN_SCOPE = frozenset({Role.RESOURCE, Role.COORDINATOR_KEY, Role.OFFSET})
"""Key roles whose values can only be mapped with the help of sibling fields."""


_Worth = Callable[[Leaf], str]

Pairs = Callable[
    [Mapping[str, Any], Mapping[str, Any], Scope, Scope, World], Iterator[tuple[Place, Place]]
]
"""Called with a captured and a live body, the scope of each, and the id mapping for live keys."""


def pairs(captured: Node, live: Node, worth: _Worth = lambda _: "True") -> Pairs:
    """
    Return a function that yields the pairs of fields of two bodies, where neither is null.

    An array of scalars is one field.

    Args:
        captured: The fields of the captured body.
        live: The fields of the live body.
        worth: Returns the condition, on a field's values `x` and `y`, under which it is wanted;
            empty for never.
    """
    code = Code("def f(a, b, s, t, world):")
    code.names.update(Place=Place, Scope=Scope, align=align, quickly=_quickly)
    code.line(1, "yield from ()")
    ours = _Side("a", "", Scopes("s").inside(captured, "a"))
    theirs = _Side("b", "", Scopes("t").inside(live, "b"))
    _pairs(code, 1, (captured, live), (ours, theirs), worth)
    return code.function()


class _Side(NamedTuple):
    """One side in the generated code: variable, path and scopes of the current struct."""

    body: str
    path: str
    scopes: Scopes

    def below(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def place(self, code: Code, leaf: Leaf, value: str) -> str:
        """Return the code that makes the `Place` of a field."""
        given = f"{code.name(leaf.role)}, {code.name(leaf.field)}, {value}"
        path = self.below(leaf.name)
        return f"Place(f{path!r}, {given}, {self.body}, {leaf.name!r}, {self.scopes.variable})"


def _pairs(
    code: Code, depth: int, nodes: tuple[Node, Node], sides: tuple[_Side, _Side], worth: _Worth
) -> None:
    ours, theirs = sides
    others = {member.name: member for member in nodes[1].members}
    for member in nodes[0].members:
        other = others.get(member.name)
        if other is None or isinstance(member, Leaf) != isinstance(other, Leaf):
            continue
        condition = worth(member) if isinstance(member, Leaf) else "True"
        if not condition:
            continue
        x, y = (f"{side.body}.get({member.name!r})" for side in sides)
        code.line(depth, f"x = {x}; y = {y}")
        code.line(depth, f"if x is not None and y is not None and {condition}:")
        if isinstance(member, Branch) and isinstance(other, Branch):
            _branches(code, depth + 1, (member, other), sides, worth)
        elif isinstance(member, Leaf) and isinstance(other, Leaf):
            first = ours._replace(scopes=ours.scopes.made(code, depth + 1, f"s{depth}"))
            second = theirs._replace(scopes=theirs.scopes.made(code, depth + 1, f"t{depth}"))
            places = first.place(code, member, "x"), second.place(code, other, "y")
            code.line(depth + 1, f"yield {', '.join(places)}")


def _branches(
    code: Code,
    depth: int,
    branches: tuple[Branch, Branch],
    sides: tuple[_Side, _Side],
    worth: _Worth,
) -> None:
    name, nodes = branches[0].name, (branches[0].node, branches[1].node)
    paths = [side.below(name) for side in sides]
    inside = f"a{depth}", f"b{depth}"
    if branches[0].is_list:
        i, j, x, y = f"i{depth}", f"j{depth}", f"x{depth}", f"y{depth}"
        own, other = (code.name(node) for node in nodes)
        code.line(depth, f"{x} = x; {y} = y; p = None")
        names, theirs = (tuple(key.name for key in node.keys) for node in nodes)
        if names == theirs:
            roles = code.name({key.role for key in nodes[0].keys})
            code.line(depth, f"if world.roles.isdisjoint({roles}):")
            code.line(depth + 1, f"p = quickly({x}, {y}, {names})")
        code.line(depth, "if p is None:")
        scope = sides[0].scopes.made(code, depth + 1, f"u{depth}").variable
        code.line(depth + 1, f"p = align({own}, {x}, {other}, {y}, {scope}, world)")
        code.line(depth, f"for {i}, {j} in p:")
        depth += 1
        code.line(depth, f"if {i} is None or {j} is None: continue")
        code.line(depth, f"{inside[0]} = {x}[{i}]; {inside[1]} = {y}[{j}]")
        paths = [f"{path}[{{{index}}}]" for path, index in zip(paths, (i, j), strict=True)]
    else:
        code.line(depth, f"{inside[0]} = x; {inside[1]} = y")
    below = [
        _Side(body, path, side.scopes.inside(node, body))
        for body, path, side, node in zip(inside, paths, sides, nodes, strict=True)
    ]
    _pairs(code, depth, nodes, (below[0], below[1]), worth)


def _quickly(
    captured: Sequence[Mapping[str, Any]], live: Sequence[Mapping[str, Any]], keys: tuple[str, ...]
) -> list[tuple[int, int]] | None:
    """Pair two arrays whose raw keys are equal in order; return None if they are not."""
    if len(captured) != len(live):
        return None
    for ours, theirs in zip(captured, live, strict=True):
        for key in keys:
            if ours.get(key) != theirs.get(key):
                return None
    return [(index, index) for index in range(len(captured))]


def align(
    node: Node,
    captured: Sequence[Mapping[str, Any]],
    live_node: Node,
    live: Sequence[Mapping[str, Any]],
    scope: Scope,
    world: World,
) -> list[tuple[int | None, int | None]]:
    """
    Pair the elements of two arrays of structs by their keys, or by index if they have none.

    Keys assigned by brokers identify nothing here: their mapping is to be learned from the pairs.

    Args:
        node: The fields of a captured element.
        captured: The captured elements.
        live_node: The fields of a live element.
        live: The live elements.
        scope: The scope that encloses the arrays, in captured values.
        world: The id mapping for live keys.

    Returns:
        Indices in the captured and the live array, None if the other array has no such element: in
        the order of the captured array, elements found only in the live array at the end.
    """
    ours: list[Key] = [()] * len(captured)
    theirs: list[Key] = [()] * len(live)
    if not all(leaf.role in GIVEN for leaf in node.keys):
        ours = [captured_key(node, element, world) for element in captured]
        theirs = [live_key(live_node, element, scope, world) for element in live]
    if ours == theirs:
        return [(index, index) for index in range(len(ours))]
    waiting: dict[Key, list[int]] = defaultdict(list)
    for index, key in enumerate(theirs):
        waiting[key].append(index)
    out: list[tuple[int | None, int | None]] = []
    for index, key in enumerate(ours):
        same = waiting.get(key)
        out.append((index, same.pop(0) if same else None))
    left = sorted(index for same in waiting.values() for index in same)
    return out + [(None, index) for index in left]


def captured_key(node: Node, element: Mapping[str, Any], world: World) -> Key:
    """Return the key of a captured element, with topics by name where the name is known."""
    values = {leaf.role: element.get(leaf.name) for leaf in node.keys if leaf.role in _TOPICS}
    others = (element.get(leaf.name) for leaf in node.keys if leaf.role not in _TOPICS)
    if not values:
        return tuple(others)
    name, topic_id = values.get(Role.TOPIC), values.get(Role.TOPIC_ID)
    if not name and topic_id not in (None, NO_ID):
        name = world.captured_topics.topic_name(topic_id) or topic_id
    return (name, *others)


def live_key(node: Node, element: Mapping[str, Any], scope: Scope, world: World) -> Key:
    """Return the key of a live element, in captured values."""
    if any(leaf.role in _IN_SCOPE for leaf in node.keys):
        scope = scope.inside(node, element)
    turned = {
        leaf.name: world.captured(leaf.role, element.get(leaf.name), scope) for leaf in node.keys
    }
    return captured_key(node, turned, world)
