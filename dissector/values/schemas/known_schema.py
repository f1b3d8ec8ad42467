"""A schema, where it comes from, and its decoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.json_places import located_json
from dissector.values.json_values import json_value
from dissector.values.located_value import LocatedValue
from dissector.values.value_limits import SchemaProblem

AVRO, JSON_SCHEMA, PROTOBUF = "avro", "json-schema", "protobuf"


class Decoder(Protocol):
    """Reads values of one schema."""

    def value(self, data: bytes, at: int, index: bytes | None) -> Any:
        """
        Return a value in the types of JSON.

        Args:
            data: The value, to its end.
            at: Where it begins.
            index: Protobuf's message index, empty for the first message; None: it is at `at`.

        Raises:
            ValueProblem: It does not fit.
        """
        ...

    def located(self, data: bytes, at: int, index: bytes | None) -> LocatedValue | None:
        """Return a value that decodes with the places of its parts; None if these are unknown."""
        return None


class _AvroDecoder(Decoder):
    def __init__(self, text: str, references: tuple[str, ...]) -> None:
        self.schema = AvroSchema(text, references)

    def value(self, data: bytes, at: int, index: bytes | None) -> Any:
        return self.schema.value(data, at)

    def located(self, data: bytes, at: int, index: bytes | None) -> LocatedValue | None:
        return self.schema.located(data, at)


class _JsonDecoder(Decoder):
    def value(self, data: bytes, at: int, index: bytes | None) -> Any:
        return json_value(data[at:])

    def located(self, data: bytes, at: int, index: bytes | None) -> LocatedValue | None:
        return located_json(data, at)


PLAIN_JSON: Decoder = _JsonDecoder()
"""Decodes JSON without a schema."""


@dataclass(eq=False, slots=True)
class KnownSchema:
    """
    A schema.

    Attributes:
        kind: `avro`, `json-schema` or `protobuf`.
        text: As its source has it.
        names: Its subjects with their versions, or the name of its file with 0.
        references: Texts of the schemas that it refers to, in the order of their use.
    """

    kind: str
    text: str
    names: list[tuple[str, int]] = field(default_factory=list)
    references: tuple[str, ...] = ()
    _decoder: Decoder | SchemaProblem | None = field(default=None, repr=False)

    @property
    def decoder(self) -> Decoder:
        """
        Return the decoder.

        Raises:
            SchemaProblem: The schema can't be used.
        """
        if self._decoder is None:
            try:
                self._decoder = self._new_decoder()
            except SchemaProblem as problem:
                self._decoder = problem
        if isinstance(self._decoder, SchemaProblem):
            raise SchemaProblem(str(self._decoder))
        return self._decoder

    def _new_decoder(self) -> Decoder:
        match self.kind:
            case "avro":
                return _AvroDecoder(self.text, self.references)
            case "json-schema":
                return _JsonDecoder()
        raise SchemaProblem(f"schemas of type {self.kind[:20]!r} are not read")

    def label(self, topic: str | None, *, is_key: bool) -> str:
        """Return its name: a subject of the topic with the version if it has one, or any."""
        side = "key" if is_key else "value"
        wanted = f"{topic}-{side}"
        subject, version = max(self.names, key=lambda name: (name[0] == wanted, name[1]))
        return f"{subject} v{version}" if version else subject
