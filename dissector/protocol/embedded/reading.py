"""
Decoded content of embedded bytes, and the decoding that all kinds of them share.

No bytes make this module raise: a mismatch is a `Problem` of the result, with a position relative
to the start of the embedded bytes.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace

from construct import Container

from dissector.errors import DecodeError, Problem
from dissector.protocol.context import current
from dissector.protocol.definitions.embedded import overlay_embedded
from dissector.protocol.messages import Message
from dissector.protocol.schema import Schema
from dissector.protocol.spans import Span, spans


@dataclass(slots=True)
class Embedded:
    """
    The content of one bytes field, or of the key or the value of one record.

    Attributes:
        path: The field in the enclosing message: `protocols[0].metadata`; `key` or `value` of a
            record.
        name: The type of content: `ConsumerProtocolSubscription`, `AlterConfigs request`,
            `SASL token`.
        data: All bytes of the field; they are the last `len(data)` bytes of the field's span.
        schema: Its declaration; None without one, as for SASL tokens.
        version: The version of its declaration.
        written_version: The version in the bytes; higher than `version` if a newer writer's bytes
            were decoded by the newest known declaration.
        start: Offset in `data` of the first declared field.
        end: Offset in `data` of the end of the decoded fields.
        value: The decoded value; None if the bytes did not match.
        message: The whole request or response, for an Envelope; `value` is then its body.
        inner: Data embedded in this one; their paths are relative to this one.
        problems: The defects found.
    """

    path: str
    name: str
    data: bytes = field(repr=False)
    schema: Schema | None = None
    version: int | None = None
    written_version: int | None = None
    start: int = 0
    end: int = 0
    value: Container | None = None
    message: Message | None = None
    inner: list[Embedded] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def left(self) -> bytes:
        """The bytes after the decoded fields."""
        return self.data[self.end :]

    def spans(self) -> Span | None:
        """Return the tree of fields with offsets in `data`; None without a declaration."""
        if self.schema is None or self.version is None:
            return None
        return spans(self.schema, self.version, self.data, self.start, self.name)

    @property
    def fits(self) -> bool:
        """Whether it was decoded without problems."""
        return self.value is not None and all(each.is_foreign for each in self.problems)

    def problem(self, what: str, position: int | None = None, path: str = "") -> None:
        """Add a problem; `path` is relative to this field."""
        self.add(Problem(what, path, position))

    def add(self, problem: Problem) -> None:
        """Add a problem with a path relative to this field."""
        self.problems.append(replace(problem, path=f"{self.path}.{problem.path}".rstrip(".")))


def read(
    path: str,
    name: str,
    schema: Schema,
    version: int,
    data: bytes,
    *,
    start: int = 0,
    forward: bool = False,
) -> Embedded:
    """
    Decode bytes by one version of a declaration.

    Args:
        path: Path of the field.
        name: Name of the declaration.
        schema: The declaration.
        version: The version that the writer used.
        data: The bytes.
        start: Offset of the first declared field.
        forward: Decode a version newer than all known ones as the newest known one, and accept
            trailing bytes then.
    """
    overlay = None if current() is None else overlay_embedded(name, schema)
    schema = schema if overlay is None else overlay.schema
    newest = schema.versions.high
    newer = forward and version > newest
    found = Embedded(path, name, data, written_version=version, start=start, end=start)
    if not newer and version not in schema.versions:
        found.problem(
            f"version {version} of {name} is not known (known: {schema.versions_text})", 0
        )
        return found
    found.schema = schema
    found.version = newest if newer else version
    stream = io.BytesIO(data)
    stream.seek(start)
    try:
        found.value = schema.codec(found.version).parse_stream(stream)
    except DecodeError as error:
        found.problem(f"{name} v{version}: {error.what}", error.position, error.path)
        return found
    found.end = stream.tell()
    if overlay is not None and found.version in overlay.sources:
        what = f"{name} v{found.version} is decoded by {overlay.sources[found.version]}"
        found.problems.append(Problem(what, path, kind="foreign"))
    if found.left and not newer:
        found.problem(f"{len(found.left)} bytes are left over after {name}", found.end)
    return found


def read_versioned(
    path: str, name: str, schema: Schema, data: bytes, *, forward: bool = False
) -> Embedded:
    """Decode bytes that begin with an int16 version; see `read`."""
    if len(data) < 2:
        short = Embedded(path, name, data)
        short.problem(f"{name} begins with a version of 2 bytes, but only {len(data)} are there", 0)
        return short
    version = int.from_bytes(data[:2], "big", signed=True)
    return read(path, name, schema, version, data, start=2, forward=forward)


def problems_of(found: Embedded) -> list[Problem]:
    """Return the problems of embedded data and of everything embedded in it."""
    below = [
        replace(p, path=f"{found.path}.{p.path}")
        for inner in found.inner
        for p in problems_of(inner)
    ]
    return found.problems + below
