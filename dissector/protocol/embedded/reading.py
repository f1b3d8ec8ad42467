"""
What embedded bytes turned out to be, and the reading that all kinds of them share.

Nothing here raises because of bytes: what does not fit is a `Problem` of what was read, whose
position counts from the beginning of the embedded bytes.
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
        path: The field in what encloses it: `protocols[0].metadata`; `key` or `value` of a record.
        name: What it is: `ConsumerProtocolSubscription`, `AlterConfigs request`, `SASL token`.
        data: All bytes of the field. The last `len(data)` bytes of the field's span are these.
        schema: Its declaration; None where there is none, as for SASL tokens.
        version: The version that it was read in.
        written_version: The version that the bytes say; above `version` where a newer writer was
            read by the newest declaration known.
        start: Where the first declared field lies in `data`.
        end: Offset in `data` behind what was read.
        value: What was read; None where it did not fit.
        message: A whole request or response, where it is one; `value` is then its body.
        inner: What is embedded in this again; their paths begin below this one.
        problems: What was wrong.
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
        """The bytes behind what was read."""
        return self.data[self.end :]

    def spans(self) -> Span | None:
        """Return the tree of fields, placed in `data`; None where no declaration fits."""
        if self.schema is None or self.version is None:
            return None
        return spans(self.schema, self.version, self.data, self.start, self.name)

    @property
    def fits(self) -> bool:
        """Whether it was read, and nothing is wrong with it."""
        return self.value is not None and all(each.is_foreign for each in self.problems)

    def problem(self, what: str, position: int | None = None, path: str = "") -> None:
        """Add a problem; `path` is below this field's own."""
        self.add(Problem(what, path, position))

    def add(self, problem: Problem) -> None:
        """Add a problem whose path is below this field's own."""
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
    Read some bytes as one version of a declaration.

    Args:
        path: Of the field.
        name: Of the declaration.
        schema: The declaration.
        version: The version that the writer used.
        data: The bytes.
        start: Where the declared fields begin.
        forward: A version newer than known is read as the newest known, and what is left then is
            no problem.
    """
    over = None if current() is None else overlay_embedded(name, schema)
    schema = schema if over is None else over.schema
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
    if over is not None and found.version in over.sources:
        what = f"{name} v{found.version} is read by {over.sources[found.version]}"
        found.problems.append(Problem(what, path, kind="foreign"))
    if found.left and not newer:
        found.problem(f"{len(found.left)} bytes are left over after {name}", found.end)
    return found


def read_versioned(
    path: str, name: str, schema: Schema, data: bytes, *, forward: bool = False
) -> Embedded:
    """Read bytes that begin with an int16 version; see `read`."""
    if len(data) < 2:
        short = Embedded(path, name, data)
        short.problem(f"{name} begins with a version of 2 bytes, {len(data)} are there", 0)
        return short
    version = int.from_bytes(data[:2], "big", signed=True)
    return read(path, name, schema, version, data, start=2, forward=forward)


def problems_of(found: Embedded) -> list[Problem]:
    """Return the problems of something embedded and of all that is embedded in it."""
    below = [
        replace(p, path=f"{found.path}.{p.path}")
        for inner in found.inner
        for p in problems_of(inner)
    ]
    return found.problems + below
