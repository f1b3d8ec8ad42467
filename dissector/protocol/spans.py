"""
A message as a tree of fields with their byte ranges, for the tree and hex views.

It uses the same declarations as a codec, but decodes field by field, so that everything before the
first bad byte stays visible. `Span.value` of the root equals the codec's result.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from construct import Container

from dissector.errors import DecodeError
from dissector.protocol.codecs import structs, wire
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.schema import Field, Schema, construct_of, split_tagged


@dataclass(slots=True)
class Span:
    """
    One field of one message.

    Attributes:
        name: The field's name; `[3]` for an element of an array, `tag 77` for an unknown tagged
            field.
        path: Its full path: `topic_data[0].name`.
        declared: Its declaration; None for the message, elements and unknown tags.
        start: Offset of its first byte (of its length or count, if any).
        end: Offset after its last byte, or where decoding stopped.
        value: The decoded value; None also if decoding failed.
        children: The fields of a struct, the elements of an array.
        problem: Reason why decoding stopped here; empty if it did not.
    """

    name: str
    path: str
    declared: Field | None
    start: int
    end: int = -1
    value: Any = None
    children: list[Span] = field(default_factory=list)
    problem: str = ""

    def leaves(self) -> list[Span]:
        """Return the spans without children, in wire order."""
        if not self.children:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]


def spans(schema: Schema, version: int, data: bytes, start: int = 0, name: str = "") -> Span:
    """
    Decode one version of a message from bytes, beginning at `start`.

    Returns:
        The root. If the bytes do not match, the innermost failed span has a `problem`, as have all
        around it, and their `end` is the end of decoding.
    """
    stream = io.BytesIO(data)
    stream.seek(start)
    root = Span(name, "", None, start)
    reader = _Reader(stream, _layout_of(schema, version))
    reader.read_span(root, reader.read_struct, schema.fields, root)
    return root


class _Layout:
    """The fields and Constructs of one version of a message."""

    def __init__(self, schema: Schema, version: int) -> None:
        self.schema = schema
        self.version = version
        self.flexible = version in schema.flexible
        # By identity, as declarations are slow to hash; they exist as long as the schema.
        self._splits: dict[int, tuple[list[Field], list[Field]]] = {}
        self._constructs: dict[int, Any] = {}

    def split(self, fields: tuple[Field, ...]) -> tuple[list[Field], list[Field]]:
        """Return the untagged and the tagged fields of the version."""
        found = self._splits.get(id(fields))
        if found is None:
            found = self._splits[id(fields)] = split_tagged(fields, self.version)
        return found

    def construct(self, declared: Field) -> Any:
        """Return the Construct of a field."""
        found = self._constructs.get(id(declared))
        if found is None:
            found = construct_of(declared, self.version, self.flexible)
            self._constructs[id(declared)] = found
        return found


@lru_cache(1024)
def _layout_of(schema: Schema, version: int) -> _Layout:
    return _Layout(schema, version)


class _Reader:
    """Decodes a stream by a declaration and adds a span to its parent for each field."""

    def __init__(self, stream: io.BytesIO, layout: _Layout) -> None:
        self.stream = stream
        self.layout = layout

    def read_span(self, span: Span, read: Callable[..., Any], *args: Any) -> bool:
        """Read one span by a function; return False if the bytes did not match."""
        try:
            span.value = read(*args)
        except DecodeError as error:
            span.problem = error.what
            span.end = max(error.position, span.start)
            return False
        span.end = self.stream.tell()
        return True

    def add_child(self, parent: Span, name: str, declared: Field | None) -> Span:
        dot = "." if parent.path and not name.startswith("[") else ""
        span = Span(name, f"{parent.path}{dot}{name}", declared, self.stream.tell())
        parent.children.append(span)
        return span

    def read_child(self, span: Span, read: Callable[..., Any], *args: Any) -> Any:
        """Read a child span by a function; a failure is passed on to the parents."""
        if not self.read_span(span, read, *args):
            raise DecodeError(span.problem, position=span.end)
        return span.value

    def read_struct(self, fields: tuple[Field, ...], parent: Span) -> Container:
        plain, tagged = self.layout.split(fields)
        out = Container()
        for each in plain:
            span = self.add_child(parent, each.name, each)
            out[each.name] = self.read_child(span, self.read_value, each, span)
        if self.layout.flexible:
            self.read_tags(tagged, parent, out)
        return out

    def read_value(self, declared: Field, span: Span) -> Any:
        construct = self.layout.construct(declared)
        if declared.type == "struct":
            if isinstance(construct, structs.Nullable) and construct.read_is_null(self.stream):
                return None
            return self.read_struct(declared.fields, span)
        if not isinstance(construct, wire.CountedArray):
            return construct._parsereport(self.stream, None, "")
        count = construct.read_count(self.stream, None, "")
        return (
            None
            if count < 0
            else [self.read_item(declared, construct, span, i) for i in range(count)]
        )

    def read_item(self, declared: Field, array: wire.CountedArray, parent: Span, index: int) -> Any:
        span = self.add_child(parent, f"[{index}]", None)
        if declared.type == "[]struct":
            return self.read_child(span, self.read_struct, declared.fields, span)
        return self.read_child(span, array.item._parsereport, self.stream, None, "")

    def read_tags(self, tagged: list[Field], parent: Span, out: Container) -> None:
        known = {f.tag: f for f in tagged}
        for f in tagged:
            out[f.name] = f.zero(self.layout.version)
        for tag, size, start in structs.TaggedFields({}).iter_tags(self.stream, None):
            declared = known.get(tag)
            if declared is None:
                span = self.add_child(parent, f"tag {tag}", None)
                value = self.read_child(span, wire.read_exactly, self.stream, size)
                out.setdefault(UNKNOWN_TAGS, {})[tag] = value
                continue
            span = self.add_child(parent, declared.name, declared)
            out[declared.name] = self.read_child(span, self.read_value, declared, span)
            structs.TaggedFields.check_end(self.stream, start + size, declared.name)
