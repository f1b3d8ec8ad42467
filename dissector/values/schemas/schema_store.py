"""All known schemas, by id, GUID, fingerprint and subject."""

from __future__ import annotations

from uuid import UUID

from dissector.values.avro.avro_fingerprint import fingerprint
from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.carriers.carried_schema import SchemaRef
from dissector.values.schemas.known_schema import AVRO, KnownSchema, Reference
from dissector.values.value_limits import SchemaProblem

MAX_SCHEMAS = 100_000
MAX_REFERENCES = 200


class SchemaStore:
    """
    The schemas of all sources.

    Attributes:
        by_subject: The versions of each subject.
        problems: What is wrong with sources, a line each.
    """

    def __init__(self) -> None:
        self.by_subject: dict[str, dict[int, KnownSchema]] = {}
        self.problems: list[str] = []
        self._by_ref: dict[SchemaRef, KnownSchema] = {}
        self._without_fingerprint: list[KnownSchema] = []
        self._by_text: dict[tuple[str, str, tuple[str, ...]], KnownSchema] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def find(self, ref: SchemaRef) -> KnownSchema | None:
        """Return a schema; None if it is unknown."""
        if isinstance(ref, bytes) and self._without_fingerprint:
            self._add_fingerprints()
        return self._by_ref.get(ref)

    def of_subject(self, topic: str | None, *, is_key: bool) -> list[KnownSchema]:
        """Return the schemas of a topic by the names of their subjects, the newest first."""
        side = "key" if is_key else "value"
        names = [f"{topic}-{side}"] if is_key else [f"{topic}-{side}", topic or ""]
        versions = [self.by_subject.get(name, {}) for name in names]
        return [each[number] for each in versions for number in sorted(each, reverse=True)]

    def add(
        self,
        kind: str,
        text: str,
        subject: str,
        version: int = 0,
        *,
        refs: tuple[SchemaRef, ...] = (),
        references: tuple[Reference, ...] = (),
        imported: tuple[str, ...] = (),
    ) -> None:
        """
        Add a schema, or another name of a known one.

        Args:
            kind: See `KnownSchema`.
            text: The schema.
            subject: Its subject, or the name of its file.
            version: Its version; 0 for a file.
            refs: Its ids.
            references: The schemas that it refers to, which come first.
            imported: Texts of other schemas that it refers to.
        """
        if len(self) >= MAX_SCHEMAS:
            return
        texts = (*self._texts(references), *imported)
        schema = self._by_text.get((kind, text, texts))
        if schema is None:
            schema = KnownSchema(kind, text, references=texts, refers_to=references)
            self._by_text[kind, text, texts] = schema
            if kind == AVRO:
                self._without_fingerprint.append(schema)
        if (subject, version) not in schema.names:
            schema.names.append((subject, version))
        self.by_subject.setdefault(subject, {})[version] = schema
        for ref in refs:
            self._by_ref[ref] = schema

    def _texts(self, references: tuple[Reference, ...]) -> tuple[str, ...]:
        """Return the schemas that are referred to, and before each what it refers to itself."""
        texts: dict[str, None] = {}
        for _, subject, version in references:
            versions = self.by_subject.get(subject, {})
            found = versions.get(version) or (versions and versions[max(versions)]) or None
            if found is not None:
                texts |= dict.fromkeys((*found.references, found.text))
        return tuple(texts)[:MAX_REFERENCES]

    def _add_fingerprints(self) -> None:
        for each in self._without_fingerprint:
            try:
                declared = AvroSchema(each.text, each.references).declared
                self._by_ref[fingerprint(declared)] = each
            except (SchemaProblem, RecursionError):
                continue
        self._without_fingerprint.clear()


def guid_of(text: object) -> UUID | None:
    """Return a GUID; None for any other value."""
    try:
        return UUID(text) if isinstance(text, str) else None
    except ValueError:
        return None
