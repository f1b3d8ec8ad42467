"""Message definitions that override the built-in declarations, as a value."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from dissector.errors import DefinitionError, UsageError
from dissector.protocol.definitions.definition_reader import Definition, read_definition
from dissector.protocol.definitions.files import DefinitionFile, definition_files

_SHARED: WeakValueDictionary[bytes, Schemas] = WeakValueDictionary()
"""Digest of the content -> `Schemas` in use: tasks of a Spark worker share derived values."""


class SourcedDefinition(NamedTuple):
    """A definition, its JAR or folder, and its file."""

    definition: Definition
    source: str
    file: str

    @property
    def container(self) -> str:
        """The JAR or folder that contains the file."""
        return self.file.rpartition("!" if "!" in self.file else "/")[0]


class Schemas:
    """
    Definitions that override the built-in declarations; created by `Schemas.of`.

    Attributes:
        problems: Definitions that can't be used, a line each: the file, the place and the error.
        derived: Cache of values derived from declarations under these definitions; see
            `per_schemas`.
    """

    def __init__(self, files: Sequence[DefinitionFile]) -> None:
        self._files = files
        self.problems: list[str] = []
        self.derived: dict[Any, Any] = {}
        self._by_name: dict[tuple[str, str], list[SourcedDefinition]] = {}
        self._by_key: dict[tuple[str, int], list[SourcedDefinition]] = {}
        for each in files:
            self._read(each)
        self._check_pairs()

    @classmethod
    def of(cls, *sources: str | Path) -> Schemas:
        """
        Read the definitions in JARs and folders; if two define a version, the later one is used.

        Raises:
            UsageError: A source can't be read, or has no definitions.
        """
        files = [file for each in sources for file in definition_files(str(each))]
        return _shared(files)

    @classmethod
    def given(cls, sources: Schemas | Iterable[str | Path] | None) -> Schemas | None:
        """Return the `Schemas` of a function's `schemas=` argument; None without definitions."""
        if sources is None or isinstance(sources, Schemas):
            return sources
        if isinstance(sources, str | Path):
            raise UsageError(f"schemas takes several names: schemas=[{str(sources)!r}]")
        names = list(sources)
        return cls.of(*names) if names else None

    def __reduce__(self) -> Any:
        """Pickle the definitions without derived values."""
        return _unpacked, (self._packed,)

    @cached_property
    def _packed(self) -> bytes:
        rows = [(each.source, each.name, each.content) for each in self._files]
        return zlib.compress(pickle.dumps(rows), 1)

    def __repr__(self) -> str:
        sources = dict.fromkeys(each.source for each in self.all())
        return f"<Schemas {', '.join(sources)}>"

    def with_key(self, kind: str, key: int) -> list[SourcedDefinition]:
        """Return the definitions of a key, in the order given."""
        return self._by_key.get((kind, key), [])

    def with_name(self, kind: str, name: str) -> list[SourcedDefinition]:
        """Return the definitions of a name, in the order given."""
        return self._by_name.get((kind, name), [])

    def all(self) -> list[SourcedDefinition]:
        """Return all definitions."""
        return [each for found in self._by_name.values() for each in found]

    def keys(self, kind: str) -> list[int]:
        """Return all defined keys in ascending order."""
        return sorted(key for of, key in self._by_key if of == kind)

    def _read(self, file: DefinitionFile) -> None:
        try:
            if file.content is None:
                raise DefinitionError("is unreadable, or too large for a definition")
            definition = read_definition(file.content)
        except DefinitionError as error:
            self.problems.append(f"{file.name}: {error}")
            return
        if list(definition.schema.versions):
            self._add(SourcedDefinition(definition, Path(file.source).name, file.name))

    def _add(self, each: SourcedDefinition) -> None:
        definition, key = each.definition, each.definition.schema.key
        named = self._by_name.setdefault((definition.kind, definition.name), [])
        keyed = [] if key is None else self._by_key.setdefault((definition.kind, key), [])
        other = next((one for one in (*named, *keyed) if _conflicts(one, each)), None)
        if other is not None:
            if not _is_same_message(other.definition, definition):
                what = definition.name if key is None else f"{definition.kind} {key}"
                self.problems.append(
                    f"{each.file}: {what} is already defined by {other.file}, which is used"
                )
            return
        named.append(each)
        keyed.append(each)

    def _check_pairs(self) -> None:
        for (kind, key), found in self._by_key.items():
            other = {"request": "response", "response": "request"}.get(kind)
            if other is not None and (other, key) not in self._by_key:
                self.problems.append(f"{found[0].file}: key {key} has a {kind} but no {other}")


def _conflicts(one: SourcedDefinition, other: SourcedDefinition) -> bool:
    """Return whether two definitions with the same name or key can't both be used."""
    if one.definition.name == other.definition.name:
        return one.source == other.source
    # Each topic numbers its records on its own.
    is_message = one.definition.kind in ("request", "response")
    return is_message or one.container == other.container


def _is_same_message(one: Definition, other: Definition) -> bool:
    a, b = one.schema, other.schema
    return (one.name, a.versions, a.flexible, a.fields) == (
        *(other.name, b.versions, b.flexible),
        b.fields,
    )


def _unpacked(packed: bytes) -> Schemas:
    rows = pickle.loads(zlib.decompress(packed))
    return _shared([DefinitionFile(*row) for row in rows])


def _shared(files: Sequence[DefinitionFile]) -> Schemas:
    """Return the definitions of the files: the same object for the same content."""
    digest = hashlib.blake2b(digest_size=20)
    for each in files:
        name = f"{each.source}\0{each.name}\0{len(each.content or b'')}\0"
        digest.update(name.encode("utf-8", "surrogateescape"))
        digest.update(each.content or b"")
    key = digest.digest()
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = Schemas(files)
    return found
